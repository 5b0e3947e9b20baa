"""Names in text: however it is wrapped, spelled and tokenized; and the component arbo_names."""

import gc
import pickle

import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st
from spacy.tokenizer import Tokenizer
from spacy.tokens import Doc, Span, SpanGroup

from spacy_arbo_el import ArboKB, Entity
from spacy_arbo_el.find.dictionary import Dictionary
from spacy_arbo_el.find.finders import mark_names
from spacy_arbo_el.find.near_names import NearNames
from spacy_arbo_el.mentions.getters import EntSpans, GroupSpans
from spacy_arbo_el.names.folding import fold

from ..cases import cases
from ..encoders import numpy_tower  # noqa: F401  registers the architecture
from ..expecting import raises, warns

NAMES = [
    *("heart attack", "acute myeloid leukemia", "myeloid leukemia", "Sjögren's syndrome", "AIDS"),
    *("São Paulo", "non-small cell lung cancer", "COVID-19", "UNESCO", "metastasis", "T-cell"),
    *("neoplasms", "fibrosis", "Alzheimer", "東京大学", "京都", "กรุงเทพ", "삼성전자", "LEOPARD"),
]
ENTITIES = [Entity(f"D{number}", name) for number, name in enumerate(NAMES)]
# Vectors of words, which cost next to nothing.
TOY = {"model": {"mention": {"@architectures": "test.HashedEncoder.v1", "context": 0.5}}}
EN, XX = spacy.blank("en"), spacy.blank("xx")


def found(text, nlp=EN, entities=ENTITIES):
    doc = mark_names(nlp.make_doc(text), Dictionary.build(nlp, entities), EntSpans())
    assert doc.text == text
    return [span.text for span in doc.ents]


@pytest.mark.parametrize("text, names", cases("names_in_text"))
def test_what_is_found(text, names):
    assert found(text) == names


@pytest.mark.parametrize("text, names", cases("names_without_spaces"))
def test_scripts_without_spaces_need_no_tokenizer(text, names):
    assert found(text, XX) == names


def test_a_tokenizer_by_white_space_leaves_marks_at_words():
    nlp = spacy.blank("en")
    nlp.tokenizer = Tokenizer(nlp.vocab)
    text = "(heart attack) in São Paulo: Alzheimer's fibrosis. A 'T-cell', UNESCO'll"
    names = ["heart attack", "São Paulo", "Alzheimer", "fibrosis", "T-cell"]
    assert found(text, nlp) == names


def test_words_of_a_tokenizer_are_not_cut():
    doc = Doc(XX.vocab, ["東京", "都", "の", "京都"], [False] * 4)
    dictionary = Dictionary.build(XX, [Entity("a", "京都"), Entity("b", "都の")])
    assert [doc[hit.start : hit.end].text for hit in dictionary.hits(doc)] == ["都の", "京都"]
    assert len(doc) == 4


def test_tokens_that_are_split_keep_what_is_known_of_them():
    nlp = spacy.blank("xx")
    nlp.add_pipe("sentencizer")
    doc = nlp("彼は東京大学で働いています。 私 は 学生。")
    doc.spans["sc"] = [Span(doc, 2, 4, "A", kb_id="Q1", span_id="x")]
    doc.ents = [Span(doc, 4, 5, "ROLE", kb_id="Q2")]
    for token in doc:
        token.pos_ = "NOUN"
    mark_names(doc, Dictionary.build(nlp, ENTITIES), GroupSpans("names"))
    assert [token.text for token in doc][:3] == ["彼は", "東京大学", "で働いています"]
    assert [span.text for span in doc.spans["names"]] == ["東京大学"]
    assert [(s.text, s.label_, s.kb_id_, s.id_) for s in doc.spans["sc"]] == [
        ("私 は", "A", "Q1", "x")
    ]
    assert [(s.text, s.label_, s.kb_id_) for s in doc.ents] == [("学生", "ROLE", "Q2")]
    assert len(list(doc.sents)) == 2
    assert {token.pos_ for token in doc} == {"NOUN"}
    assert Doc(doc.vocab).from_bytes(doc.to_bytes()).text == doc.text


def test_a_plural_is_first_the_name_that_it_is():
    entities = [Entity("one", "wart"), Entity("all", "warts"), Entity("x", "gland", "", ["glands"])]
    dictionary = Dictionary.build(EN, [*entities, Entity("a", "cherry"), Entity("b", "cherrie")])
    doc = EN.make_doc("warts and a wart of glands, cherries")
    hits = dictionary.hits(doc)
    assert [dictionary.names[hit.name].kb_id for hit in hits] == ["all", "one", "x"]


WORDS = st.sampled_from([*NAMES, "a", "of", "Covid-19", "(", "heart", "attack.", "東京", "x-ray,"])
SPACES = st.sampled_from([" ", "  ", "\n", "\u00a0", "\t", " \r\n ", "\u2009"])


@given(st.lists(st.tuples(WORDS, SPACES), max_size=12))
def test_white_space_and_dashes_change_nothing(pieces):
    plain = found(" ".join(word for word, _ in pieces).strip())
    other = "".join(word.replace("-", "\u2011") + space for word, space in pieces).strip()
    assert [fold(name).text for name in found(other)] == [fold(name).text for name in plain]


@given(st.text(max_size=40), st.data())
def test_any_text_is_folded_with_its_offsets(text, data):
    folded = fold(text)
    start = data.draw(st.integers(0, len(folded.text)))
    end = data.draw(st.integers(start, len(folded.text)))
    place = folded.original(start, end)
    assert folded.original(0, len(folded.text)) is not None
    if place is not None and start < end:
        assert place[0] >= 0
        assert place[0] < place[1]
        assert place[1] <= len(text)


@given(st.text(min_size=5, max_size=12), st.text(max_size=8), st.text(max_size=8))
def test_any_name_can_be_sought_in_any_text(name, before, after):
    name = name.replace("\0", "")
    text = f"{before} {name} {after}".replace("\0", "")
    for one in found(text, XX, [Entity("x", name)] if name.strip() else []):
        assert fold(one.strip()).text.startswith(fold(name.strip()).text[:2])


# The component


@pytest.fixture
def nlp():
    nlp = names_and_linker({})
    entity = Entity("D1", "infarction", aliases=["heart attack"], types=["DISEASE"])
    nlp.get_pipe("arbo_linker").set_kb([entity])
    return nlp


def links(doc):
    return [(span.text, span.label_, span.kb_id_) for span in doc.ents]


def test_two_lines_link_raw_text(nlp, linker, tmp_path):
    assert links(nlp("A heart\nattack.")) == [("heart\nattack", "DISEASE", "D1")]
    # The component follows the knowledge base.
    linker.kb.add(Entity("D2", "gout"))
    assert links(nlp("A gout.")) == [("gout", "ENTITY", "D2")]
    linker.kb.update(Entity("D2", "gouty arthritis"))
    assert links(nlp("A gouty arthritis.")) == [("gouty arthritis", "ENTITY", "D2")]
    linker.set_kb([Entity("D2", "gout disease")])
    assert links(nlp("A heart attack and gout disease.")) == [("gout disease", "ENTITY", "D2")]
    nlp.to_disk(tmp_path / "model")
    assert links(spacy.load(tmp_path / "model")("Gout disease.")) == [
        ("Gout disease", "ENTITY", "D2")
    ]


def test_names_of_another_program_are_found_in_the_next_document(nlp, linker, tmp_path):
    with ArboKB.create(tmp_path / "kb") as kb:
        kb.add(Entity("D1", "asthma"))
    linker.set_kb(tmp_path / "kb")
    assert links(nlp("An asthma.")) == [("asthma", "ENTITY", "D1")]
    with ArboKB.open(tmp_path / "kb") as kb:
        kb.add(Entity("D2", "gout"))
    assert links(nlp("A gout.")) == [("gout", "ENTITY", "D2")]


def test_mentions_that_are_there_stay(nlp):
    names = nlp.get_pipe("arbo_names")
    doc = nlp.make_doc("A heart attack at Heart House, heart attack")
    doc.ents = [Span(doc, 1, 2, "ORGAN"), Span(doc, 4, 6, "ORG")]
    assert [span.text for span in names(doc).ents] == ["heart", "Heart House", "heart attack"]
    names.overwrite = True
    assert [span.text for span in names(doc).ents] == ["heart attack", "heart attack"]


def test_processes_have_the_linker_of_the_pipeline(nlp):
    names, linker = pickle.loads(pickle.dumps([pipe for _, pipe in nlp.pipeline]))
    linker.kb.add(Entity("D3", "new disease"))
    assert links(linker(names(nlp.make_doc("A new disease.")))) == [("new disease", "ENTITY", "D3")]


def test_a_linker_must_follow():
    nlp = spacy.blank("en")
    nlp.add_pipe("arbo_names")
    with raises("E511.*arbo_linker.*comes after"):
        nlp("text")


INVISIBLE = "\u200b\u200d\u2060\ufeff\u00ad\u200e\u200f\u061c\u202a\u202e\u2066\u2069"


@pytest.mark.parametrize("char", INVISIBLE)
def test_names_beside_characters_that_nobody_sees(char):
    places = [f"He had {char}heart attack.", f"He had heart attack{char}.", f"{char}heart attack"]
    places += [f"({char}heart attack{char})", f"A {char}fever{char} or heart attack"]
    assert [found(text) for text in places] == [["heart attack"]] * 5
    assert found(f"He had heart{char} attack.") == [f"heart{char} attack"]
    assert found("He had grey itch.", entities=[Entity("D", f"grey{char} itch")]) == ["grey itch"]
    assert found(f"heart attack{char}s and {char}x") in ([f"heart attack{char}s"], [])


@pytest.mark.parametrize(("text", "names"), cases("capitals"))
def test_words_of_a_text_in_capitals_are_no_symbols(text, names):
    entities = [Entity("H1", "WAS"), Entity("H2", "IMPACT")]
    assert found(text, entities=entities) == names
    assert [name for name, _ in found_near(text, entities)] == names


def test_symbols_of_a_list_in_small_letters_are_found_in_capitals():
    entities = [
        Entity("D1", "optic atrophy", aliases=["oak", "saids", "nd"]),
        Entity("D2", "suffering", aliases=["pain"]),
        Entity("D3", "back pain"),
        Entity("T1", "elm"),
    ]
    text = "The oak and the elm, he said with pain, of the 2nd nd are no OAK."
    assert found(text, entities=entities) == ["elm", "pain", "OAK"]
    # A list with a name in capitals has each in its own spelling.
    entities.append(Entity("D4", "Gout"))
    assert found(text, entities=entities) == ["oak", "elm", "pain", "nd"]


def names_and_linker(entities, **config):
    nlp = spacy.blank("en")
    nlp.add_pipe("arbo_names", config=config)
    add_linker(nlp, entities)
    return nlp


def add_linker(nlp, entities, name="arbo_linker", **config):
    linker = nlp.add_pipe("arbo_linker", name, config={**TOY, **config})
    linker.model.initialize()
    linker.encoder.weights_changed()
    if entities:
        linker.set_kb([{"id": key, "title": title} for key, title in entities.items()])


def names_in(nlp, text="He had grey itch, and blue fever."):
    return [ent.text for ent in nlp(text).ents]


def test_a_sourced_component_follows_the_pipeline_that_it_is_in():
    source, nlp = names_and_linker({"D1": "blue fever"}), spacy.blank("en")
    nlp.add_pipe("arbo_names", source=source)
    add_linker(nlp, {"Z9": "grey itch"})
    for _ in range(2):
        assert (names_in(nlp), names_in(source)) == (["grey itch"], ["blue fever"])
    both = spacy.blank("en")
    for name in ("arbo_names", "arbo_linker"):
        both.add_pipe(name, source=source)
    del source
    gc.collect()
    assert names_in(both) == ["blue fever"]
    assert names_in(nlp) == ["grey itch"]


def test_a_linker_that_was_renamed_is_found():
    nlp = names_and_linker({"D1": "blue fever"}, linker="arbo_linker")
    nlp.rename_pipe("arbo_linker", "el")
    assert names_in(nlp) == ["blue fever"]
    add_linker(nlp, {}, "other", extension="other")
    with raises("E511"):
        names_in(nlp)


def test_names_without_a_knowledge_base_are_warned_of():
    with warns("W548.*'arbo_linker' is empty"):
        assert names_in(names_and_linker({})) == []


NEAR = [Entity(f"E{n}", name, types=[f"T{n}"]) for n, name in enumerate(cases("near_entities"))]


def found_near(text, entities=NEAR, **options):
    names = NearNames.of(EN.vocab, EN.Defaults.stop_words, entities, **options)
    doc = mark_names(EN.make_doc(text), names, EntSpans())
    assert doc.text == text
    return [[span.text, span.label_] for span in doc.ents]


@pytest.mark.parametrize(("text", "names"), cases("near_names"))
def test_what_is_found_near(text, names):
    assert found_near(text) == names


def test_what_is_exact_is_found_as_before():
    text = "Huntington disease and UNESCO; alpha-synuclein in Velmo Lake (Norway)."
    exact = mark_names(EN.make_doc(text), Dictionary.build(EN, NEAR), EntSpans())
    assert found_near(text) == [[span.text, span.label_] for span in exact.ents]


@pytest.mark.parametrize(("names", "text", "right"), cases("names_of_lists"))
def test_what_is_found_of_a_list(names, text, right):
    entities = [Entity(f"E{number}", name) for number, name in enumerate(names)]
    assert [text for text, _ in found_near(text, entities)] == right


def test_groups_of_spans_keep_their_attributes():
    doc = Doc(EN.vocab, ["He", "ate", "Tarnow-Velmo"])
    spans = [Span(doc, 0, 1, "A")]
    doc.spans["some"] = SpanGroup(doc, name="some", attrs={"by": "ann"}, spans=spans)
    doc.spans["none"] = SpanGroup(doc, name="none", attrs={"round": 2})
    mark_names(doc, Dictionary.build(EN, [Entity("E", "Velmo")]), EntSpans())
    assert [token.text for token in doc][2:] == ["Tarnow-", "Velmo"]
    assert [(group.name, group.attrs, len(group)) for group in doc.spans.values()] == [
        ("some", {"by": "ann"}, 1),
        ("none", {"round": 2}, 0),
    ]


@pytest.mark.parametrize(("name", "text"), cases("ordinary_words"))
def test_an_ordinary_word_is_no_name(name, text):
    assert found_near(text, [Entity("E1", name)]) == []


def test_the_subject_of_a_list_names_none_of_it():
    entities = [Entity(f"C{n}", f"cell {chr(97 + n % 26)}{n} body") for n in range(200)]
    text = "the cell, cells and cell a0 body"
    assert found_near(text, [*entities, Entity("C", "cell")]) == [["cell a0 body", "ENTITY"]]
    assert found_near(text, [entities[0], Entity("C", "cell")])[0] == ["cell", "ENTITY"]


def test_forms_are_a_setting():
    entities = {"D1": "blue fever"}
    near, exact = (names_and_linker(entities, forms=forms) for forms in ("near", "exact"))
    assert names_in(exact, "fevers blue") == []
    assert names_in(near, "fevers blue") == ["fevers blue"]
    with raises(r"arbo_names\.forms.*'near', 'exact'"):
        names_and_linker(entities, forms="fuzzy")


def test_top_terms_are_found_where_they_are_asked_for():
    entities = [Entity("D", "disease", "", ["malady"], ["Disorder"])]
    entities += [Entity("X", "disorder", types=["Disorder"]), Entity("Y", "a5 disease", "", [])]
    parents = {"parents": ["D"]}
    entities += [Entity(f"D{n}", f"fever b{n}", "", [], ["Disorder"], 0.0, parents) for n in "abcd"]
    text = "Diseases, a malady, disorders, fever bc and a5 disease"
    assert found(text, entities=entities) == ["fever bc", "a5 disease"]
    assert [name for name, _ in found_near(text, entities)] == ["fever bc", "a5 disease"]
    names = [name for name, _ in found_near(text, entities, top_terms=True)]
    assert names[:3] == ["Diseases", "malady", "disorders"]
