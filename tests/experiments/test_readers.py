"""The readers of experiments, named by --format with --code: small files, and the real ones."""

import json
import os
from pathlib import Path

import pytest
import spacy
from spacy.tokens import DocBin
from spacy.util import import_file

from spacy_arbo_el.corpora.convert import concept_map_of
from spacy_arbo_el.kb.entity import Entity
from spacy_arbo_el.kb.importers import ImportReport
from spacy_arbo_el.kb.knowledge_base import ArboKB

from ..commands import run

SCRIPT = Path(__file__).parents[2] / "experiments" / "readers.py"
readers = import_file("readers", SCRIPT)
DATA = Path(os.environ.get("ARBO_DATA_DIR", SCRIPT.parents[2] / "shared" / "data"))
real = pytest.mark.skipif(not DATA.is_dir(), reason="no real data here: set ARBO_DATA_DIR")


def test_commands_find_the_readers_by_code(tmp_path):
    record = {"id": 7, "text": "A film.", "index": [[2, 6]], "wikipedia_titles": ["Film_(art)"]}
    source, kb = tmp_path / "zelda.jsonl", tmp_path / "kb"
    source.write_text(json.dumps({**record, "wikipedia_ids": [215]}))
    run("kb", "build", source, kb, "--format", "zelda", "--code", SCRIPT)
    assert ArboKB.for_reading(kb).get("215").id == "Film (art)"
    output = tmp_path / "zelda.spacy"
    run("convert", source, output, "--format", "zelda", "--code", SCRIPT)
    (doc,) = DocBin().from_disk(output).get_docs(spacy.blank("xx").vocab)
    assert [(span.text, span.kb_id_) for span in doc.ents] == [("film", "Film (art)")]


def test_tokens_of_medmentions_are_joined_by_spaces(tmp_path):
    sentences = [
        {"tokens": ["Cystic", "fibrosis", "."], "mentions": [[0, 2, "C1", "Cystic fibrosis"]]},
        {"tokens": ["Pa", "infects", "."], "mentions": [[0, 1, "C2", "Pa"], [1, 2, "C3", "x"]]},
    ]
    (tmp_path / "a").write_text(json.dumps({"pmid": "7", "sents": sentences}))
    (text,) = readers.MedMentions().read(tmp_path / "a")
    mentions = [(text.text[m.start : m.end], m.kb_id) for m in text.mentions]
    assert mentions == [("Cystic fibrosis", "C1"), ("Pa", "C2"), ("infects", "C3")]


@pytest.mark.parametrize(
    "page, title",
    [("El_Paso,_Texas", "El Paso, Texas"), ("100%25_Wolf", "100% Wolf"), ("A?b=c#d", "A")],
)
def test_titles_of_addresses_are_decoded_once(page, title):
    assert readers.title_of_address(f"https://en.wikipedia.org/wiki/{page}") == title


@real
@pytest.mark.parametrize(
    "reader, place, count, skipped",
    [
        (readers.MedicHalf, "medic_half", 13_063, 0),
        (readers.Medic2012, "medic_2012", 11_915, 0),
        (readers.Fb15k, "wikidata_fb15k/entity2wikidata.json", 14_509, 6),
        (readers.ZeldaTitles, "zelda", 6_293, 0),
    ],
)
def test_numbers_of_real_entities(reader, place, count, skipped):
    report = ImportReport()
    entities = list(reader().read(DATA / place, report))
    assert (len({entity.id for entity in entities}), report.skipped.total()) == (count, skipped)


@real
def test_ids_of_medic_half_lead_to_its_concepts():
    entities = list(readers.MedicHalf().read(DATA / "medic_half"))
    assert sum(len(entity.names) for entity in entities) == 39_960
    concepts = json.loads((DATA / "medic_half" / "concept_map.json").read_text())
    ids = {id_: concept for concept, ids in concepts.items() for id_ in ids}
    assert concept_map_of(entities).items() >= ids.items()


@real
@pytest.mark.parametrize(
    "reader, file, docs, mentions",
    [
        (readers.Zelda, "zelda/test_tweeki.jsonl", 500, 860),
        (readers.Zelda, "zelda/test_wned-wiki.jsonl", 319, 6_764),
        (readers.MedMentions, "medmentions/st21pv_dev.jsonl", 377, 17_720),
    ],
)
def test_numbers_of_real_mentions(reader, file, docs, mentions):
    texts = list(reader().read(DATA / file))
    assert (len(texts), sum(len(text.mentions) for text in texts)) == (docs, mentions)


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
