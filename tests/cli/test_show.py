"""Links in tables."""

from spacy_arbo_el.cli.show import _print_links, _print_new_entities
from spacy_arbo_el.kb.entity import Entity
from spacy_arbo_el.mentions.annotations import Evidence, Link, annotate
from spacy_arbo_el.mentions.getters import EntSpans, place_of

from ..linker.world import annotated


class FakeLinker:
    class mentions:  # noqa: N801
        getter = EntSpans()

    class kb:  # noqa: N801
        get = staticmethod(lambda kb_id: Entity(kb_id, "benzo[a]pyrene [/bold]\x1b[2J"))

    cfg = {"extension": "arbo"}


def test_names_in_tables_are_no_markup_and_do_not_control_the_terminal(capsys):
    import spacy

    doc = annotated(spacy.blank("xx"), "Some [pyrene|x] and [other|y].")
    step = Evidence("mention", "0:1", "[red]x[/red]", "", 0.5)
    new = Link("NIL", 0.1, cluster="NEW-[bold]")
    links = [Link("E[1]", 0.9, evidence=[step, step]), new]
    offsets = [place_of(ent) for ent in doc.ents]
    annotate(doc, dict(zip(offsets, links)), EntSpans(), "arbo", True)
    _print_links(doc, FakeLinker)
    _print_new_entities([doc], FakeLinker)
    output = capsys.readouterr().out
    for text in ("benzo[a]pyrene [/bold]\\x1b[2J", "E[1]", "[red]x[/red]", "NEW-[bold]"):
        assert text in output
    assert "\x1b[2J" not in output
