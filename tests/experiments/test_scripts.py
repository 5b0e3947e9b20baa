"""The scripts of experiments and benchmarks: each runs, and gives what is worked out by hand."""

import json
import re
from pathlib import Path

import pytest
import spacy
import srsly
from spacy.tokens import DocBin
from spacy.util import import_file

from spacy_arbo_el import ArboKB, Entity, find_linker, load_pipeline
from spacy_arbo_el.corpora.docbin import write_docbin
from spacy_arbo_el.corpora.docs import unlinked
from spacy_arbo_el.evaluation.outcomes import outcomes
from spacy_arbo_el.evaluation.report import score_rows
from spacy_arbo_el.kb.importers import ImportReport
from spacy_arbo_el.kb.verbalizations import Names

from ..commands import run, run_script
from ..contrib.papers.test_cross_encoder import IN_RANKER, with_scorer
from ..devices import needs_index
from ..linker.conftest import build
from ..linker.world import DEV, ENTITIES, TRAIN, annotated, docs_of, examples
from ..scores import compare, held_out

EXPERIMENTS = Path(__file__).parents[2] / "experiments"
baselines, oracles, pretrain, readers = (
    import_file(name, EXPERIMENTS / f"{name}.py")
    for name in ("baselines", "oracles", "pretrain", "readers")
)
VOTE = {"@misc": "spacy-arbo-el.ExemplarVote.v1", "n_exemplars": 15}


def test_rankers_of_a_pipeline_and_of_a_corpus():
    nlp = build([Entity("river", "Amazon River"), Entity("metal", "Mercury")], train=["x"])
    linker = find_linker(nlp)
    doc = annotated(nlp, "Boats on the [007|river] and [nothing|NIL].")
    mentions = [(span.text, [span.kb_id_]) for span in doc.ents if span.kb_id_ != "NIL"]
    assert baselines.training_mentions(linker, None) == []
    found = {n: rank(["007"]).ids[0, 0] for n, rank in baselines.rankers(linker, mentions).items()}
    river = linker.kb.entities.position("river")
    known = {"TF-IDF + training mentions", "alias table", "alias table + parts"}
    assert {name for name, position in found.items() if position == river} == known


def test_one_graph_gives_the_links_of_link_corpus():
    nlp = build(train=TRAIN[:6])
    data, linker = examples(nlp, DEV + TRAIN[6:]), find_linker(nlp)
    found = compare.outcomes_in_one_graph(nlp, data, compare.procedures)
    for name, stages in compare.procedures(linker.stages).items():
        linker.stages = stages
        docs = linker.corpus.link([unlinked(eg.reference) for eg in data])
        linked = [type(eg)(doc, eg.reference) for doc, eg in zip(docs, data)]
        assert found[name] == outcomes(linked, linker.mentions.getter, "arbo", linker.kb)
    folds = compare.outcomes_in_one_graph(nlp, data, compare.procedures, folds=2)
    assert all(len(found[name]) == len(folds[name]) for name in compare.PROCEDURES)
    by_document = held_out.outcomes_of_stages(nlp, data, compare.on_one_curve)
    printed = compare.as_markdown({"a": score_rows(nlp, by_document)})
    assert printed.count("| a |") == 2
    assert "directed, exemplars" in printed


def test_only_the_labels_are_linked(app, tmp_path):
    ids, output = tmp_path / "ids.txt", tmp_path / "o.json"
    ids.write_text("planet\n\nriver\n")
    options = ("--labels", str(ids), "--output", str(output))
    run_script(EXPERIMENTS / "labels.py", str(app / "model"), str(app / "dev.spacy"), *options)
    scores = srsly.read_json(output)[f"{app / 'model'}: as configured"]
    assert scores["arbo_mentions"] == len(DEV)
    assert scores["arbo_recall_at_64"] == 1.0, "mentions of other entities are NIL"
    assert scores["arbo_nil_r"] is not None


def test_scores_of_oracles_count_mentions_without_an_entity_as_misses(tiny_bert):
    nlp = with_scorer(tiny_bert, section=IN_RANKER, weight=0.5)
    linker = find_linker(nlp)
    unknown = annotated(nlp, "Nobody saw the [zorb|unknown] again.", label="OTHER")
    docs = [*docs_of(nlp, DEV), unknown]
    candidates = oracles.OracleCandidates.retrieve(linker, docs, len(ENTITIES)).with_gold()
    scores = oracles.oracle_scores(linker, candidates, docs)
    assert scores.mentions == len(DEV) + 1
    assert len(candidates.batch) == len(DEV)
    hits = round(scores.unnormalized * scores.mentions)
    assert scores.macro == pytest.approx(hits / len(DEV) / 2)
    assert scores.normalized == pytest.approx(hits / len(DEV)), "all entities are candidates"


def test_names_in_text_are_mentions_of_their_entities():
    entities = [
        Entity("a", "zorblat", "the green one of two", ["Quimby's fizzle"], ["T"]),
        Entity("b", "brackle", "", ["hollow moss"]),
        Entity("c", "alone", "has no other name", ["Alone"]),
    ]
    corpus = pretrain.NamesInText(lambda vocab: ArboKB(vocab, entities), n=40, words=3)
    nlp = spacy.blank("xx")
    examples, again = list(corpus(nlp)), list(corpus(nlp))
    names = {"a": {"zorblat", "Quimby's fizzle"}, "b": {"brackle", "hollow moss"}}
    seen = set()
    for example in examples:
        (mention,) = example.reference.ents
        assert mention.text in names[mention.kb_id_]
        assert mention.label_ == ("T" if mention.kb_id_ == "a" else "ENTITY")
        assert example.predicted.ents[0].kb_id_ == ""
        before, after = (part.split() for part in example.text.split(mention.text))
        assert len(before) <= 3
        assert len(after) <= 3
        seen |= {mention.text, *before, *after}
    # Each name, each description, and on either side.
    assert len(examples) == 40
    assert seen > {"green", "other"} | names["a"] | names["b"]
    assert [eg.text for eg in examples] == [eg.text for eg in again]


def test_the_number_with_the_best_accuracy_is_saved(tmp_path):
    nlp = build(train=TRAIN, inference=VOTE)
    nlp.to_disk(tmp_path / "model")
    write_docbin(docs_of(nlp), tmp_path / "dev.spacy")
    paths = [str(tmp_path / "model"), str(tmp_path / "dev.spacy")]
    options = ["--n-exemplars", "15", "1", "2", "--output", str(tmp_path / "tuned")]
    printed = run_script(EXPERIMENTS / "tuned_counts.py", *paths, *options)
    found = re.findall(r"n_exemplars = (\d+): accuracy ([\d.]+)", printed)
    scores = {int(count): float(accuracy) for count, accuracy in found}
    assert set(scores) == {15, 1, 2}
    best = min(scores, key=lambda count: (-scores[count], count))
    tuned = find_linker(load_pipeline(tmp_path / "tuned"))
    assert tuned.stages.inference.n_exemplars == best


def test_commands_find_the_readers_by_code(tmp_path):
    record = {"id": 7, "text": "A film.", "index": [[2, 6]], "wikipedia_titles": ["Film_(art)"]}
    source, kb = tmp_path / "zelda.jsonl", tmp_path / "kb"
    source.write_text(json.dumps({**record, "wikipedia_ids": [215]}))
    run("kb", "build", source, kb, "--format", "zelda", "--code", EXPERIMENTS / "readers.py")
    assert ArboKB.for_reading(kb).get("215").id == "Film (art)"
    output = tmp_path / "zelda.spacy"
    run("convert", source, output, "--format", "zelda", "--code", EXPERIMENTS / "readers.py")
    (doc,) = DocBin().from_disk(output).get_docs(spacy.blank("xx").vocab)
    assert [(span.text, span.kb_id_) for span in doc.ents] == [("film", "Film (art)")]


def test_ctd_diseases_become_entities(tmp_path):
    text = (
        "# Fields:\n# DiseaseName\tDiseaseID\n"
        "Fever\tMESH:D1\tOMIM:7|MESH:C9\tHot.\t\tC23/1|C23/2\t\tPyrexia|Fevers\tX\n"
    )
    path = tmp_path / "ctd.tsv"
    path.write_text(text)
    report = ImportReport()
    (fever,) = readers.Medic().read(path, report)
    assert fever == Entity(
        "D1",
        "Fever",
        "Hot.",
        ("Pyrexia", "Fevers"),
        ("Disease",),
        meta={"ids": ["D1", "7", "C9"], "tree": ["C23/1", "C23/2"]},
    )
    assert report.redirects == {"7": "D1", "C9": "D1"}


@needs_index
def test_the_script_compares_indexes_over_a_knowledge_base(tmp_path, rng):
    with ArboKB.create(tmp_path / "kb") as kb:
        kb.add(Entity(f"e{i}", f"name {i}") for i in range(12_000))
        kb.encode_missing(Names(), lambda t: rng.standard_normal((len(t), 16)), "x")
        kb.remove(["e5", "e7"])
    indexes = ("-i", "IVF256,PQ4x4fs nprobe=64", "-i", "HNSW32 efSearch=64")
    table = run_script(
        EXPERIMENTS.parent / "benchmarks" / "search.py",
        "index",
        str(tmp_path / "kb"),
        *indexes,
        "--queries",
        "50",
    )
    lines = [line.split(" | ") for line in table.splitlines()[2:]]
    assert [line[0].strip("| ") for line in lines] == [indexes[1], indexes[3]]
    assert all(0.1 < float(line[1]) <= 1 for line in lines)
