"""Every reason that ``explain`` can give, brought about."""

import pytest
from typer.testing import CliRunner

from spacy_arbo_el.cli import arbo_cli
from spacy_arbo_el.inference.calibration import Calibration
from spacy_arbo_el.kb.entity import Entity
from spacy_arbo_el.visualization import render_evidence

from .conftest import build
from .world import ENTITIES, annotated, without_links

TEXT = "Boats travel up the [Amazon|river] through the rain forest."


def span_of(nlp, text=TEXT, label="THING"):
    return without_links(annotated(nlp, text, label=label)).ents[0]


@pytest.fixture
def nlp():
    return build()


def test_a_link(nlp):
    lines = nlp.get_pipe("arbo_linker").explain(span_of(nlp)).splitlines()
    assert lines[0].startswith('"Amazon": river (Amazon), chance ')
    assert [line.split()[0] for line in lines[1:4]] == ["entity", "exemplar", "mention"]
    assert "…" in lines[2] and "rain forest" in lines[2], "the exemplar's context"
    assert lines[4].startswith("  candidates: river (Amazon) ")


def why(nlp, kb_id, **options):
    lines = nlp.get_pipe("arbo_linker").explain(span_of(nlp, **options), kb_id).splitlines()
    return lines[-1]


def test_what_became_of_an_entity(nlp):
    linker = nlp.get_pipe("arbo_linker")
    assert why(nlp, "tree") == "tree: not in the knowledge base"
    assert why(nlp, "shop").startswith("shop: found in place 2, with a chance of ")
    assert why(nlp, "NIL").startswith("NIL: a link needs a chance of 0")
    linker.kb.redirect({"stream": "river"})
    assert why(nlp, "stream") == "stream: leads to river, which is what was linked"
    linker.threshold = 0.9999
    text = linker.explain(span_of(nlp), "shop")
    assert "NIL: the likeliest, river, has a chance of 0." in text
    assert "under the threshold of 0.9999" in text and "is too low" in text
    linker.threshold = 0.0
    linker.refuse(span_of(nlp), "river")
    assert why(nlp, "river").startswith("river: refused by a correction")
    linker.forget(span_of(nlp))
    linker.learn(span_of(nlp), "NIL")
    assert "NIL: no entity was found for it" in linker.explain(span_of(nlp))


def test_types_labels_and_what_is_not_found():
    nlp = build(match_types=True, labels_discard=["JUNK"])
    assert why(nlp, "river", label="COMPANY") == "river: refused by type: PLACE, not COMPANY"
    assert "the label JUNK are left out" in why(nlp, "river", label="JUNK")
    nlp = build(n_candidates=1)
    assert why(nlp, "fruit").startswith("fruit: not found among the 1 nearest: its nearest text ")
    none = {"@misc": "spacy-arbo-el.NoText.v1"}
    nlp = build([*ENTITIES, Entity("silent", "Silent")], verbalization=none)
    assert why(nlp, "silent") == (
        "silent: it has no text with a vector, and none of its exemplars is near"
    )


def test_a_span_that_is_no_mention(nlp):
    doc = nlp.make_doc("The probe flew past Mercury today.")
    assert "planet" in nlp.get_pipe("arbo_linker").explain(doc[4:5])
    assert doc.ents == ()


def test_command(nlp, tmp_path):
    nlp.to_disk(tmp_path / "model")
    text = "Boats travel up the Amazon."

    def run(*options):
        arguments = ["explain", str(tmp_path / "model"), text, *options]
        return CliRunner().invoke(arbo_cli, arguments)

    assert "river (Amazon)" in run("--mention", "Amazon", "--kb-id", "shop").output
    assert run().exit_code == 1 and "found no mention" in run().output
    assert "no 'Nile' in the text" in run("--mention", "Nile").output


TWO = (
    "Boats travel up the [Amazon|river] through the rain forest. "
    "[Amazon|shop] opened a warehouse, and customers order books."
)


def test_taken_by_another_cluster_and_the_page(nlp, tmp_path):
    linker = nlp.get_pipe("arbo_linker")
    doc = nlp(without_links(annotated(nlp, TWO)))
    assert [ent.kb_id_ for ent in doc.ents] == ["river", "shop"]
    # A chance that any two mentions of a document are the same takes both to one entity.
    curves = {"entity": (12, -6), "exemplar": (12, -6), "mention": (200, 0)}
    linker.calibration = Calibration.from_config(curves)
    doc = nlp(without_links(annotated(nlp, TWO)))
    (linked,) = {ent.kb_id_ for ent in doc.ents}
    taken, other = (1, "shop") if linked == "river" else (0, "river")
    said = linker.explain(doc.ents[taken], other).splitlines()[-1]
    assert said.startswith(f"{other}: taken by another cluster: the likeliest by itself, but the")
    assert f'mention "Amazon" ({doc.ents[1 - taken].start_char}:' in said
    assert said.endswith(f"carried it to {linked}")

    page = render_evidence([doc, nlp.make_doc("a <b> with nothing")])
    assert page.startswith("<!DOCTYPE html>") and page.count("<li>") == 2
    assert page.count("class='step entity'") == 2 and "class='step mention'" in page
    assert "a &lt;b&gt; with nothing" in page and "<b> with" not in page
    assert not render_evidence([doc], page=False).startswith("<!DOCTYPE")
    nil = build(threshold=1.0)
    page = render_evidence([nil(without_links(annotated(nil, TEXT)))], kb_url_template="x/{}")
    assert "new entity new-1; nearest: river (" in page
    assert "<li>" not in render_evidence([annotated(nlp, TEXT)]), "not linked yet"


def test_the_command_writes_the_page(nlp, tmp_path):
    nlp.to_disk(tmp_path / "model")
    arguments = [
        "explain",
        tmp_path / "model",
        "Boats travel up the Amazon.",
        "--mention",
        "Amazon",
    ]
    arguments += ["--kb-id", "shop", "--page", tmp_path / "page.html"]
    result = CliRunner().invoke(arbo_cli, list(map(str, arguments)))
    assert result.exit_code == 0 and "shop: found in place" in result.output, result.output
    assert "class='step entity'" in (tmp_path / "page.html").read_text()
