"""``arbo check``: each thing that hurts is found, with its place, and nothing else."""

import re

import pytest
import spacy
from spacy.tokens import Doc, Span

from spacy_arbo_el import ArboKB, Entity
from spacy_arbo_el.corpora.docbin import write_docbin
from spacy_arbo_el.kb.duplicates import duplicate_pairs
from spacy_arbo_el.kb.importers import write_entities_jsonl

from .. import commands
from ..linker.world import DEV, ENTITIES, TRAIN, annotated

NLP = spacy.blank("xx")
UNNAMED = Entity("E9", meta={"unnamed": True})
TWICE = Entity("store", "AMAZON", aliases=["Amazon.com", "Amazon shop"], types=["COMPANY"])


@pytest.fixture
def check(tmp_path):
    """Function from documents and entities to what the command prints."""

    def check(train, dev=None, entities=ENTITIES, *options):
        write_entities_jsonl(entities, tmp_path / "kb.jsonl")
        write_docbin(train, tmp_path / "train.spacy")
        if dev is not None:
            write_docbin(dev, tmp_path / "dev.spacy")
            options = ("--dev", tmp_path / "dev.spacy", *options)
        output = commands.run("check", tmp_path / "train.spacy", tmp_path / "kb.jsonl", *options)
        return re.sub(r"\x1b\[[0-9;]*m", "", output)

    return check


def documents(texts, **settings):
    return [annotated(NLP, text, **settings) for text in texts]


def spanned(words, spaces, start, end, **settings):
    """A document with one mention over tokens."""
    doc = Doc(NLP.vocab, words=words, spaces=spaces)
    doc.ents = [Span(doc, start, end, **{"label": "THING", "kb_id": "river", **settings})]
    return doc


def test_data_without_faults_have_a_recommendation(check):
    output = check(documents(TRAIN), documents(DEV))
    absent = output.split("Not found: ")[1]
    for what in ("mentions whose gold ids are not", "mentions without a gold id", "pairs of"):
        assert what in absent
    assert "mentions of dev whose entity has no training mention" in absent
    assert "Config: the defaults, with arbo fit instead" in output
    assert "only 20 mentions" in output
    assert "Encoder: the bundled" in output


def test_ids_labels_and_gold_that_are_missing(check):
    train = documents(["[Amazon|Q9], [river|river] and [Amazon|Q9]"])
    train += documents(["On [Monday|river]"], label="DATE")
    train.append(spanned(["Nile"], [False], 0, 1, kb_id=""))
    train += documents(["[Zorblax|NIL] and [Amazon|river]"])
    output = check(train)
    assert "2 of 5 mentions whose gold ids are not in the knowledge base Q9 (2 times)" in output
    assert "1 of 7 mentions left out by their label DATE" in output
    assert "1 of 7 mentions without a gold id 'Nile' in" in output
    assert "1 of 7 mentions annotated as NIL 'Zorblax' in" in output
    assert "fit the probabilities to such documents: spacy arbo fit" in output


@pytest.mark.parametrize(
    "doc, where",
    [
        (spanned(["the", "Amazon", " ", "is"], [True] * 4, 1, 3), "in whitespace 'Amazon "),
        (spanned(["the", "Amaz", "ons"], [True, False, False], 1, 2), "inside a word 'Amaz'"),
        (spanned(["Amazon", "'", "s"], [False] * 3, 0, 2), 'where tokens do "Amazon\'"'),
    ],
)
def test_offsets(check, doc, where):
    assert f"1 of 1 mentions that {'do not ' * ('tokens' in where)}begin" in check([doc])
    assert where in check([doc])


def test_leaked_documents_unseen_entities_and_ambiguous_forms(check):
    train = documents([*TRAIN, "[Amazon|river]"])
    output = check(
        train, documents(["pink dolphins live in the [Amazon|river]  and its side arms."])
    )
    assert "1 of 1 documents of dev with the text of a training document" in output
    assert "4 of 11 surface forms of several entities in the corpus 'amazon': river, shop" in output
    output = check(documents(TRAIN[:1]), documents(DEV))
    assert "7 of 8 mentions of dev whose entity has no training mention" in output


def test_entities_twice_and_without_a_name(check):
    output = check(documents(TRAIN), None, [*ENTITIES, TWICE, UNNAMED])
    assert "1 of 10 pairs of entities that are probably one" in output
    assert 'shop "Amazon" = store "AMAZON"' in output
    assert "1 of 10 entities without a name E9" in output


def test_duplicates_share_the_title_or_all_names_and_types():
    entities = [
        Entity("a", "Röntgen-film", aliases=["X-ray"]),
        Entity("b", "rontgen film", aliases=["plate"]),
        Entity("c", "plate"),
        Entity("d", "plate", types=["DISH"]),
        Entity("e", "☢"),
        Entity("f", "🍎"),
    ]
    assert duplicate_pairs(entities) == [(0, 1), (1, 2)]
    assert duplicate_pairs([]) == []


def test_what_suits_other_data(check):
    many = documents(["[cat|cat]"] * 300)
    assert "Config: descriptions: 100%" in check(many)
    assert "Config: linker" in check(many, None, [Entity("cat")])
    assert "Config: exemplars_only" in check(many, None, [Entity("cat"), UNNAMED, TWICE][1:2])
    assert "Encoder: sentence-transformers/paraphrase" in check(many)


def test_a_span_group(check):
    train = documents(TRAIN[:1], key="sc")
    assert "1 documents, 2 mentions" in check(train, None, ENTITIES, "--spans-key", "sc")
    output = check(train)
    assert "1 documents, 0 mentions" in output
    assert "1 of 1 documents without a mention" in output
    assert "--spans-key" in output
    assert "Not found: mentions" not in output


# Advice that people got on their first day, which was wrong or which they lacked.


def test_numbers_apart_are_no_duplicate():
    def entities(*titles):
        return [Entity(str(number), title) for number, title in enumerate(titles)]

    assert duplicate_pairs(entities("syndrome 12", "syndrome 1/2")) == []
    assert duplicate_pairs(entities("type 1.2", "type 12", "type 1-2")) == [(0, 2)]
    assert duplicate_pairs(entities("T-cell 12", "t cell, 12")) == [(0, 1)]


def test_kb_add_has_the_options_that_its_errors_name(tmp_path):
    write_entities_jsonl(ENTITIES, tmp_path / "kb.jsonl")
    commands.run("kb", "build", tmp_path / "kb.jsonl", tmp_path / "kb")
    (tmp_path / "more.csv").write_text("Key,Name\nE9,zorblat\n")
    arguments = ("kb", "add", tmp_path / "kb", tmp_path / "more.csv")
    problem = commands.run(*arguments, code=1)
    named = set(re.findall(r"--[a-z-]+", problem))
    assert named == {"--column", "--header"}
    assert named <= set(re.findall(r"--[a-z-]+", commands.run("kb", "add", "--help")))
    commands.run(*arguments, "--column", "id=Key")
    (tmp_path / "last.csv").write_text("E10,quorn\n")
    last = ("kb", "add", tmp_path / "kb", tmp_path / "last.csv")
    commands.run(*last, "--header", "id,title")
    kb = ArboKB.for_reading(tmp_path / "kb")
    assert kb.get("E9").title == "zorblat"
    assert kb.get("E10").title == "quorn"


@pytest.mark.parametrize("name", ["corpus.txt", "corpus"])
def test_convert_names_the_option_where_a_format_is_not_known(tmp_path, name):
    """PubTator whose first line is not the title."""
    (tmp_path / name).write_text("# from PubTator\n123|t|A title.\n123|a|An apple.\n")
    problem = commands.run("convert", tmp_path / name, tmp_path / "out.spacy", code=1)
    assert "--format" in problem
    assert "pubtator" in problem
    assert "JSON" not in problem
    (tmp_path / "wrong.jsonl").write_text("no json\n")
    problem = commands.run("convert", tmp_path / "wrong.jsonl", tmp_path / "out.spacy", code=1)
    assert "line 1: no valid JSON" in problem


def test_names_that_no_mention_has_are_warned_of(check):
    joined = [Entity(entity.id, "; ".join(entity.names)) for entity in ENTITIES]
    what = "mentions by a name of no entity, of nearly all"
    printed = check(documents(DEV), None, joined)
    assert f"8 of 8 {what}" in printed
    assert "kb search" in printed
    assert what in check(documents(DEV)).split("Not found: ")[1]
