"""Every reason that ``explain`` can give."""

import pytest
import spacy
from spacy.tokens import Span

from spacy_arbo_el import Calibration, Entity, find_linker, render_evidence
from spacy_arbo_el.ranking.feature_ranker import FeatureRanker
from spacy_arbo_el.ranking.features import FEATURES

from ..commands import run
from ..linker.conftest import build, build_bundled
from ..linker.world import ENTITIES, annotated, unlinked_doc
from ..ranking.test_feature_ranker import weights_of

TEXT = "Boats travel up the [Amazon|river] through the rain forest."


def span_of(nlp, text=TEXT, label="THING"):
    return unlinked_doc(nlp, text, label=label).ents[0]


def test_a_link_shows_its_path_and_candidates(nlp):
    lines = str(find_linker(nlp).explain(span_of(nlp))).splitlines()
    assert lines[0].startswith('"Amazon": river (Amazon), probability ')
    assert [line.split()[0] for line in lines[1:4]] == ["entity", "exemplar", "mention"]
    assert "…" in lines[2], "the exemplar's context"
    assert "rain forest" in lines[2]
    assert lines[4].startswith("  candidates: river (Amazon) ")


def why(nlp, kb_id, **options):
    explanation = find_linker(nlp).explain(span_of(nlp, **options), kb_id)
    return str(explanation).splitlines()[-1]


def test_why_an_expected_entity_is_not_linked(nlp, linker):
    assert why(nlp, "tree") == "tree: not in the knowledge base"
    assert why(nlp, "shop").startswith("shop: candidate number 2 with a probability of ")
    assert why(nlp, "NIL").startswith("NIL: a link needs a probability of 0")
    linker.kb.redirect({"stream": "river"})
    assert why(nlp, "stream") == "stream: redirects to river, which is what was linked"
    linker.threshold = 0.9999
    text = str(linker.explain(span_of(nlp), "shop"))
    assert "NIL: the most probable candidate, river (Amazon), has a probability of 0." in text
    assert "below the threshold of 0.9999" in text
    assert "which is below the threshold" in text
    linker.threshold = 0.0
    linker.feedback.reject_link(span_of(nlp), "river")
    assert why(nlp, "river").startswith("river: excluded by a correction")
    linker.feedback.forget(span_of(nlp))
    linker.feedback.learn(span_of(nlp), "NIL")
    assert "NIL: it has no candidates" in str(linker.explain(span_of(nlp)))


def test_which_features_put_a_candidate_before_another(nlp, linker):
    assert not linker.explain(span_of(nlp)).contributions, "BestEvidence.v1 has no features"
    linker.reranker = FeatureRanker(weights=weights_of(name=200.0, has_exemplar=1.0))
    why = linker.explain(span_of(nlp))
    first, second = why.link.ids[:2]
    assert why.compared == (first, second)
    assert why.words.startswith(f"{first} before {second}: ")
    assert why.words in str(why)
    assert why.numbers.startswith("name ")
    assert set(why.contributions) == {*FEATURES, "frequency"}
    last = why.link.ids[-1]
    assert linker.explain(span_of(nlp), last).compared == (first, last)
    assert linker.explain(span_of(nlp), "tree").compared == (first, second)


@pytest.mark.bundled
def test_all_that_were_compared_in_context_are_named():
    linker = (nlp := spacy.blank("en")).add_pipe("arbo_linker")
    band, firm = "a singer of folk songs", "a surgeon for hearts"
    linker.set_kb(
        [
            {"id": "S", "title": "Marwick", "description": band},
            {"id": "P", "title": "Jon Marwick", "description": firm},
            {"id": "X", "title": "Quorn", "description": "a maker of meals"},
        ]
    )
    doc = nlp.make_doc("Marwick played the guitar on stage.")
    doc.ents = [Span(doc, 0, 1, label="PERSON")]
    context = linker.explain(linker(doc).ents[0]).context
    assert f' S (Marwick), "{band}"; ' in context
    assert context.endswith(f' P (Jon Marwick), "{firm}"')


def test_why_a_correction_excludes_an_entity(nlp, linker):
    similar = TEXT.replace("Boats", "Ships")
    linker.feedback.learn(span_of(nlp, similar), "shop")
    reason = why(nlp, "river")
    assert reason.startswith('river: excluded by a correction of the mention "Amazon" in ')
    linker.kb.redirect({"stream": "river"})
    linker.feedback.forget(span_of(nlp, similar))
    linker.feedback.reject_link(span_of(nlp), "river")
    assert why(nlp, "stream").startswith(
        "stream: excluded by a correction; linker.feedback.forget(span)"
    )
    linker.feedback.forget(span_of(nlp))
    # The entity of a correction was removed: it excludes nothing.
    linker.kb.add(Entity("ship", "Ship"))
    linker.feedback.learn(span_of(nlp), "ship")
    linker.kb.remove("ship")
    assert "correction" not in why(nlp, "shop")


def test_types_discarded_labels_and_entities_that_are_not_retrieved():
    nlp = build(retriever={"match_types": True}, mentions={"labels_discard": ["JUNK"]})
    assert why(nlp, "river", label="COMPANY") == (
        "river: excluded by type: the entity is PLACE, the mention COMPANY"
    )
    assert "the label JUNK are left out" in why(nlp, "river", label="JUNK")
    nlp = build(retriever={"n_candidates": 1})
    assert why(nlp, "fruit").startswith("fruit: not among the 1 candidates: its nearest text ")
    none = {"@misc": "spacy-arbo-el.NoText.v1"}
    nlp = build([*ENTITIES, Entity("silent", "Silent")], retriever={"verbalization": none})
    assert why(nlp, "silent") == (
        "silent: it has no text with a vector, and none of its exemplars was retrieved"
    )


def test_command(nlp, tmp_path):
    nlp.to_disk(tmp_path / "model")
    text = "Boats travel up the Amazon."

    command = "show", tmp_path / "model", "--text", text
    page = "--kb-id", "shop", "--page", tmp_path / "page.html"
    printed = run(*command, "--mention", "Amazon", *page)
    assert "river (Amazon)" in printed
    assert "shop: candidate number" in printed
    assert "class='step entity'" in (tmp_path / "page.html").read_text()
    assert "found no mention" in run(*command, code=1)
    assert "no 'Nile' in the text" in run(*command, "--mention", "Nile", code=1)


TWO = (
    "Boats travel up the [Amazon|river] through the rain forest. "
    "Customers order books at [Amazon|shop], an online shop."
)


@pytest.mark.bundled
def test_overruled_by_another_cluster_and_the_page():
    nlp = build_bundled()
    linker = find_linker(nlp)
    doc = nlp(unlinked_doc(nlp, TWO))
    assert [ent.kb_id_ for ent in doc.ents] == ["river", "shop"]
    # With a high probability that any two mentions are the same, both go to one entity.
    curves = {"entity": (12, -6), "exemplar": (12, -6), "mention": (200, 0)}
    linker.calibration = Calibration.from_config(curves)
    doc = nlp(unlinked_doc(nlp, TWO))
    (linked,) = {ent.kb_id_ for ent in doc.ents}
    taken, other = (1, "shop") if linked == "river" else (0, "river")
    reason = str(linker.explain(doc.ents[taken], other)).splitlines()[-1]
    assert reason.startswith(f"{other}: overruled by another cluster: candidate number 1 with a")
    assert f'mention "Amazon" ({doc.ents[1 - taken].start_char}:' in reason
    assert reason.endswith(f"led it to {linked}")

    page = render_evidence([doc, nlp.make_doc("a <b> with nothing")])
    assert page.startswith("<!DOCTYPE html>")
    assert page.count("<li>") == 2
    assert page.count("class='step entity'") == 3, "two links and the legend"
    assert "class='step mention'" in page
    assert "a &lt;b&gt; with nothing" in page
    assert "<b> with" not in page
    assert not render_evidence([doc], page=False).startswith("<!DOCTYPE")
    nil = build_bundled(threshold=1.0)
    page = render_evidence([nil(unlinked_doc(nil, TEXT))], kb_url_template="https://x/{}")
    assert "new entity new-1" in page
    assert "NIL: the most probable candidate, river (Amazon), has" in page
    assert "<li>" not in render_evidence([annotated(nlp, TEXT)]), "not linked yet"


def test_a_link_explains_itself_as_the_linker_does(nlp):
    doc = nlp(annotated(nlp, "A spacecraft circles [Mercury|planet]."))
    span = doc.ents[0]
    own, linkers = span._.arbo.explain(), find_linker(nlp).explain(span)
    assert type(own) is type(linkers)
    assert (own.outcome, own.link, own.mention) == (linkers.outcome, linkers.link, linkers.mention)
    few = [line for line in str(linkers).split("\n") if " before " not in line]
    assert str(own).split("\n")[:3] == few[:3]
    assert span._.arbo.path.startswith("entity ")
