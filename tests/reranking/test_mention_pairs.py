"""The scorer of edges between mentions, in documents, corpora, new entities and streams."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st

from spacy_arbo_el.arrays import TopK
from spacy_arbo_el.calibration.calibration import LOG_ODDS, MENTION_KINDS
from spacy_arbo_el.distributed.identity import folder_fingerprint
from spacy_arbo_el.encoders.passages import document_passages
from spacy_arbo_el.encoders.windows import mention_windows
from spacy_arbo_el.evaluation.calibrate import calibrate_pipeline
from spacy_arbo_el.evaluation.tuning import tune
from spacy_arbo_el.linker import find_linker
from spacy_arbo_el.log import warn_once
from spacy_arbo_el.pipelines import save_pipeline
from spacy_arbo_el.reranking.mention_pairs import MentionPairs
from spacy_arbo_el.reranking.pair_inputs import pairs_of_mentions
from spacy_arbo_el.reranking.pair_scorer import CachedScorer, PairScorer

from ..linker.conftest import build_tiny
from ..linker.world import DEV, TRAIN, annotated, without_links
from .test_pair_inputs import MENTIONS, TEXT, literal_mention, word_pieces  # noqa: F401
from .test_pair_inputs import read as read_text

SECTION = {"@misc": "spacy-arbo-el.MentionPairs.v1", "n_scored": 3, "window": 16}
INFERENCES = {
    "clustering": {"@misc": "spacy-arbo-el.Clustering.v1"},
    "consensus": {"@misc": "spacy-arbo-el.Consensus.v1"},
}


def scorer_of(linker, sharpness=500):
    """A scorer with random weights: half of the edges are surer than those from entities."""
    source = linker.model.get_ref("mention")
    scorer = PairScorer.create(source, linker.mention_scorer.size, linker.encoder.fingerprint)
    head = scorer.model.layers[1]
    head.set_param("W", head.get_param("W") * sharpness)
    head.set_param("b", np.array([10], dtype=np.float32))
    return scorer


def with_scorer(tiny_bert, section=SECTION, trained=True, **config):
    nlp = build_tiny(tiny_bert, mention_scorer=section, **config)
    linker = find_linker(nlp)
    if section and trained:
        linker.mention_scorer = replace(linker.mention_scorer, scorer=scorer_of(linker))
        linker.calibration = linker.calibration.for_mention_scorer()
    return nlp


@pytest.fixture(scope="module", params=list(INFERENCES))
def nlp(request, tiny_bert):
    """Don't change it."""
    return with_scorer(tiny_bert, inference=INFERENCES[request.param])


def together(texts):
    """Pairs of texts as one: most documents of the small world have one or two mentions."""
    return [" ".join(texts[i : i + 3]) for i in range(0, len(texts), 3)]


def docs_of(nlp, texts=(*DEV, *TRAIN)):
    return [without_links(annotated(nlp, text)) for text in together(list(texts))]


def links(docs):
    return [[(span.kb_id_, span._.arbo.cluster) for span in doc.ents] for doc in docs]


def scores(docs):
    return [span._.arbo.score for doc in docs for span in doc.ents]


def read(nlp, docs):
    stages = find_linker(nlp).stages
    return stages.encode(stages.reader.read_docs(docs))


# What is read


@given(window=st.integers(8, 30), as_document=st.booleans())
def test_pairs_are_those_of_a_literal_procedure(word_pieces, window, as_document):  # noqa: F811
    offsets, text_of = np.array(MENTIONS), np.zeros(len(MENTIONS), dtype=np.int64)
    if as_document:
        inputs = document_passages(word_pieces, 256, 9, [TEXT], text_of, offsets)
    else:
        inputs = mention_windows(word_pieces, 64, [TEXT], text_of, offsets)
    count = len(MENTIONS)
    first, second = np.repeat(np.arange(count), count), np.tile(np.arange(count), count)
    pairs = pairs_of_mentions(inputs, first, second, window, word_pieces.specials)
    assert len(pairs) == count * count
    for i, (a, b) in enumerate(zip(first.tolist(), second.tolist())):
        parts = [literal_part(word_pieces, window, *MENTIONS[row]) for row in (a, b)]
        expected = [*parts[0], *parts[1][1:]]
        assert pairs.ids[slice(*pairs.offsets[i : i + 2])].tolist() == expected
        assert (pairs.first[i], pairs.last[i]) == (len(parts[0]), len(expected) - 1)
        start = word_pieces.specials[2]
        assert expected[pairs.marker[i]] == start and pairs.marker[i] >= pairs.first[i]
        assert len(expected) <= 2 * window


def literal_part(word_pieces, window, begin, end):  # noqa: F811
    texts = (TEXT[:begin], TEXT[begin:end], TEXT[end:])
    return literal_mention(word_pieces, window, *(read_text(word_pieces, text) for text in texts))


# Scores


def test_scores_are_the_mean_of_both_ways_round_and_best_first(nlp):
    stages = find_linker(nlp).stages
    batch = read(nlp, docs_of(nlp))
    found = stages.retrieve(batch)
    plain = replace(stages, mention_scorer=None).retrieve(batch)
    assert found.scored and not plain.scored and plain.mentions.valid.any()
    part = stages.mention_scorer
    for row in range(len(batch)):
        near = plain.mentions.ids[row]
        near = near[near >= 0][: part.n_scored]
        own = np.full(len(near), row)
        ways = [part.scorer(part.pairs(batch.inputs, *ends)) for ends in ((own, near), (near, own))]
        expected = sorted(zip(-np.mean(ways, axis=0), near.tolist()))
        kept = found.mentions.valid[row]
        assert found.mentions.ids[row][kept].tolist() == [mention for _, mention in expected]
        assert found.mentions.scores[row][kept] == pytest.approx(
            [-score for score, _ in expected], abs=1e-3
        )


@given(st.floats(0.1, 20), st.floats(-10, 10))
def test_log_odds_by_similarity_are_added_to_the_scores(nlp, slope, offset):
    stages = find_linker(nlp).stages
    batch = read(nlp, docs_of(nlp))
    nearest = replace(stages, mention_scorer=None).retrieve(batch).mentions
    nearest = nearest.first(stages.mention_scorer.n_scored)
    plain = stages.mention_scorer.cached()
    added = replace(plain, curve=(slope, offset))
    fingerprint = stages.encoder.fingerprint
    found = [part(batch.inputs, nearest, fingerprint) for part in (plain, added)]
    for row in range(len(batch)):
        similarity, before, after = (
            dict(zip(table.ids[row].tolist(), table.scores[row].tolist()))
            for table in (nearest, *found)
        )
        assert before.keys() == after.keys()
        for mention in before.keys() - {-1}:
            expected = before[mention] + slope * similarity[mention] + offset
            assert after[mention] == pytest.approx(expected, rel=1e-4, abs=1e-3)
    assert (np.diff(np.nan_to_num(found[1].scores, neginf=-1e9), axis=1) <= 0).all()


def test_the_curve_is_saved(nlp):
    part = find_linker(nlp).mention_scorer
    for curve in (None, (3.0, -1.5)):
        given = replace(part, curve=curve)
        assert given.from_bytes(given.to_bytes()).curve == curve
    assert part.from_bytes(replace(part, curve=(3.0, -1.5)).to_bytes()).curve == (3.0, -1.5)
    assert replace(part, curve=(3.0, -1.5)).from_bytes(b"").curve is None
    with pytest.raises(ValueError, match="E401"):
        part.from_bytes(replace(part, curve=(-1.0, 0.0)).to_bytes())


class Counting:
    """A scorer that counts what it reads."""

    def __init__(self, inner):
        self.inner, self.count = inner, 0

    @property
    def scorer(self):
        return self.inner

    def __call__(self, pairs):
        self.count += len(pairs)
        return self.inner(pairs)


def test_a_pair_is_read_once_each_way_round(nlp):
    stages = find_linker(nlp).stages
    batch = read(nlp, docs_of(nlp))
    nearest = replace(stages, mention_scorer=None).retrieve(batch).mentions
    part = replace(stages.mention_scorer, n_scored=9)
    counting = Counting(part.scorer)
    replace(part, scorer=counting)(batch.inputs, nearest, stages.encoder.fingerprint)
    rows, columns = np.nonzero(nearest.valid)
    pairs = {frozenset(pair) for pair in zip(rows.tolist(), nearest.ids[rows, columns].tolist())}
    assert counting.count == 2 * len(pairs) < 2 * len(rows), "some name each other"


@pytest.mark.parametrize("first", [0, 2])
def test_rows_can_be_the_last_of_the_mentions(nlp, first):
    stages = find_linker(nlp).stages
    inputs = read(nlp, docs_of(nlp)).inputs
    nearest = TopK.empty(len(inputs) - first, 2)
    nearest.ids[:, 0] = 1
    nearest.scores[:, 0] = 0.5
    part, fingerprint = stages.mention_scorer, stages.encoder.fingerprint
    found = part(inputs, nearest, fingerprint, first)
    rows = np.arange(first, len(inputs))
    expected = part.score(inputs, rows, np.ones_like(rows))
    assert found.scores[:, 0] == pytest.approx(expected, abs=1e-3)


# Without it, and before it is trained


def test_without_training_and_without_the_part_links_are_the_same(tiny_bert):
    untrained, without = (
        with_scorer(tiny_bert, section, trained=False) for section in (SECTION, None)
    )
    found, expected = (list(nlp.pipe(docs_of(nlp))) for nlp in (untrained, without))
    assert links(found) == links(expected) and scores(found) == scores(expected)
    corpora = [find_linker(nlp).link_corpus(docs_of(nlp)) for nlp in (untrained, without)]
    assert links(corpora[0]) == links(corpora[1]) and scores(corpora[0]) == scores(corpora[1])


def test_scores_change_links(nlp, tiny_bert):
    linker = find_linker(nlp)
    inference = nlp.get_pipe_config("arbo_linker")["inference"]
    plain = with_scorer(tiny_bert, None, inference=inference)
    assert scores(nlp.pipe(docs_of(nlp))) != scores(plain.pipe(docs_of(plain)))
    corpora = [find_linker(one).link_corpus(docs_of(one)) for one in (nlp, plain)]
    assert scores(corpora[0]) != scores(corpora[1])
    assert linker.stages.scores_mentions


# Round trips


@pytest.mark.parametrize("batch_size", [1, 2, 64])
def test_call_equals_pipe(nlp, batch_size):
    expected = [nlp(doc) for doc in docs_of(nlp)]
    found = list(nlp.pipe(docs_of(nlp), batch_size=batch_size))
    assert links(found) == links(expected)
    assert scores(found) == pytest.approx(scores(expected), abs=1.1e-4)


def test_to_bytes_and_to_disk_and_back(nlp, tmp_path):
    expected = list(nlp.pipe(docs_of(nlp)))
    nlp.to_disk(tmp_path / "model")
    again = spacy.load(tmp_path / "model")
    copy = spacy.util.load_model_from_config(nlp.config).from_bytes(nlp.to_bytes())
    for other in (again, copy):
        found = list(other.pipe(docs_of(other)))
        assert links(found) == links(expected) and scores(found) == scores(expected)
    without = spacy.load(tmp_path / "model", exclude=["arbo_linker"])
    assert "arbo_linker" not in without.pipe_names
    linker = find_linker(again)
    bare = linker.to_bytes(exclude=["mention_scorer"])
    assert len(bare) < len(linker.to_bytes())


def test_a_pipeline_that_was_saved_without_it_can_be_given_one(tiny_bert, tmp_path):
    nlp = with_scorer(tiny_bert, None)
    nlp.to_disk(tmp_path / "model")
    again = spacy.load(
        tmp_path / "model", config={"components.arbo_linker.mention_scorer": SECTION}
    )
    part = find_linker(again).mention_scorer
    assert isinstance(part, MentionPairs) and not part.is_trained and part.window == 16


def test_a_changed_scorer_is_another_pipeline(tiny_bert, tmp_path):
    nlp = with_scorer(tiny_bert)
    linker = find_linker(nlp)
    save_pipeline(nlp, tmp_path / "one")
    before = folder_fingerprint(tmp_path / "one")
    linker.mention_scorer = replace(linker.mention_scorer, scorer=scorer_of(linker, 501))
    save_pipeline(nlp, tmp_path / "one")
    assert folder_fingerprint(tmp_path / "one") != before


@pytest.mark.slow
def test_n_process(nlp):
    expected = links(nlp.pipe(docs_of(nlp)))
    assert links(nlp.pipe(docs_of(nlp), n_process=2, batch_size=2)) == expected


def test_scores_are_remembered_while_an_encoder_is_cached(nlp):
    linker = find_linker(nlp)
    before, expected = linker.mention_scorer, links(nlp.pipe(docs_of(nlp)))
    with linker.cached_encoder():
        assert isinstance(linker.mention_scorer.scorer, CachedScorer)
        assert links(nlp.pipe(docs_of(nlp))) == expected == links(nlp.pipe(docs_of(nlp)))
    assert linker.mention_scorer is before


# Corpora, new entities, streams


@pytest.mark.parametrize("order", [1, -1])
def test_a_corpus_does_not_depend_on_the_order_of_its_documents(nlp, order):
    linker = find_linker(nlp)
    expected = links(linker.link_corpus(docs_of(nlp)))
    found = linker.link_corpus(docs_of(nlp)[::order])
    assert links(found)[::order] == expected


def new_entities_of(tiny_bert, method, bias, threshold=0.5):
    """The groups of mentions that no entity fits, by a scorer that gives each pair one score."""
    discovery = {
        "@misc": "spacy-arbo-el.Discovery.v1",
        "method": method,
        "threshold": threshold,
        "n_neighbors": 3,
    }
    nlp = with_scorer(tiny_bert, discovery=discovery, threshold=1.0)
    linker = find_linker(nlp)
    head = linker.mention_scorer.scorer.model.layers[1]
    head.set_param("W", head.get_param("W") * 0)
    head.set_param("b", np.array([bias], dtype=np.float32))
    return nlp, linker


@pytest.mark.parametrize("method", ["weak", "strong", "arborescence", "average"])
def test_discovery_goes_by_scores(tiny_bert, method):
    for bias, is_one in ((4.0, True), (-4.0, False)):
        nlp, linker = new_entities_of(tiny_bert, method, bias)
        found = linker.discover(docs_of(nlp))
        count = sum(len(entity.members) for entity in found)
        assert count > 10
        # Four in ten mentions at least share a cluster with all that edges lead to.
        assert (len(found) < count / 3) if is_one else (len(found) == count)
        # In a document, mentions are grouped by the same scores.
        (doc,) = nlp.pipe(docs_of(nlp)[:1])
        groups = {span._.arbo.cluster for span in doc.ents}
        assert (len(groups) == 1) if is_one else (len(groups) == len(doc.ents))


def test_a_stream_goes_by_scores(tiny_bert):
    for bias, is_one in ((4.0, True), (-4.0, False)):
        nlp, linker = new_entities_of(tiny_bert, "weak", bias)
        linker.stream = True
        docs = list(nlp.pipe(docs_of(nlp), batch_size=2))
        names = {span._.arbo.cluster for doc in docs for span in doc.ents}
        count = sum(len(doc.ents) for doc in docs)
        assert (len(names) == 1) if is_one else (len(names) == count)


def test_what_people_have_decided_is_grouped_by_scores_too(tiny_bert):
    nlp, linker = new_entities_of(tiny_bert, "weak", 4.0)
    found = linker.discover(docs_of(nlp)[:2])
    found.reject(found.ids[0])
    linker.new_entities = found
    again = linker.discover(docs_of(nlp))
    assert not len(again), "what is similar to a rejected entity belongs to it"


# Calibration and tuning


def test_curves_between_mentions_are_fitted_on_scores(tiny_bert):
    nlp = with_scorer(tiny_bert)
    linker = find_linker(nlp)
    before = linker.calibration
    assert all(getattr(before, kind) == LOG_ODDS for kind in MENTION_KINDS)
    calibrate_pipeline(nlp, [annotated(nlp, text) for text in together([*DEV, *TRAIN])])
    after = linker.calibration
    other = with_scorer(tiny_bert, None)
    calibrate_pipeline(other, [annotated(other, text) for text in together([*DEV, *TRAIN])])
    cosines = find_linker(other).calibration
    assert after.entity == cosines.entity and after.exemplar == cosines.exemplar
    for kind in ("same_mention", "same_new_entity"):
        assert getattr(after, kind) != getattr(cosines, kind)


def test_tuning_of_discovery_goes_by_scores(tiny_bert):
    nlp = with_scorer(tiny_bert)
    linker = find_linker(nlp)
    docs = [annotated(nlp, text) for text in together([*DEV, *TRAIN])]
    scored = tune(linker, docs)
    linker.mention_scorer = None
    by_similarity = tune(linker, docs)
    assert [row["ari"] for row in scored.discovery.rows] != [
        row["ari"] for row in by_similarity.discovery.rows
    ]


# Explaining


def test_explain_names_the_scorer_where_an_edge_between_mentions_decided(nlp):
    linker = find_linker(nlp)
    named = []
    for doc in docs_of(nlp):
        for span in nlp(doc).ents:
            explanation = linker.explain(span)
            by_mention = len([s for s in explanation.link.evidence if s.kind == "mention"]) > 1
            assert ("mention scorer" in str(explanation)) == by_mention
            named.append(by_mention)
    assert any(named) and not all(named)


# Bad input


def test_a_mention_alone_in_its_document_and_none_at_all(nlp):
    alone = without_links(annotated(nlp, DEV[0]))
    assert [span.kb_id_ for span in nlp(alone).ents] != [""]
    assert not len(nlp(nlp.make_doc("Nothing is here.")).ents)
    linker = find_linker(nlp)
    assert len(linker.link_corpus([without_links(annotated(nlp, DEV[0]))])) == 1
    assert linker.link_corpus([]) == []


def test_mentions_that_are_longer_than_the_window(nlp):
    long = f"They met at the [{('wide river bank ' * 30).strip()}|river]. The [Amazon|river] rose."
    stages = find_linker(nlp).stages
    batch = read(nlp, [annotated(nlp, long)])
    pairs = stages.mention_scorer.pairs(batch.inputs, np.array([0, 1]), np.array([1, 0]))
    assert pairs.lengths.max() <= stages.mention_scorer.size
    found = stages.retrieve(batch).mentions
    assert np.isfinite(found.scores[:, 0]).all()


def test_mentions_that_cannot_be_read_are_nobody_s_neighbours(nlp):
    stages = find_linker(nlp).stages
    batch = read(nlp, docs_of(nlp)[:1])
    inputs, last = batch.inputs, batch.inputs.last.copy()
    last[0] = inputs.first[0] - 1
    count = len(batch)
    nearest = TopK(
        np.tile(np.arange(count), (count, 1)), np.zeros((count, count), dtype=np.float32)
    )
    part = replace(stages.mention_scorer, n_scored=count)
    found = part(replace(inputs, last=last), nearest, stages.encoder.fingerprint)
    assert not (found.ids == 0).any() and not found.valid[0].any() and found.valid[1].any()


def test_nan_is_an_error(tiny_bert):
    nlp = with_scorer(tiny_bert)
    part = find_linker(nlp).mention_scorer
    part.scorer.model.layers[1].set_param("b", np.array([np.nan], dtype=np.float32))
    with pytest.raises(ValueError, match="E873"):
        nlp(docs_of(nlp)[0])
    with pytest.raises(ValueError, match="not finite"):
        part.from_bytes(part.to_bytes())


def test_a_retriever_that_has_changed_since_is_warned_of(nlp):
    linker = find_linker(nlp)
    part, inputs = linker.mention_scorer, read(nlp, docs_of(nlp)[:1]).inputs
    nearest = TopK(np.array([[1], [0]]), np.array([[0.5], [0.5]], dtype=np.float32))
    warn_once.cache_clear()
    with pytest.warns(UserWarning, match="W910"):
        part(inputs, nearest, "another")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        part(inputs, nearest, linker.encoder.fingerprint)


def test_settings_that_do_not_fit_are_refused(nlp):
    for wrong in ({"n_scored": 0}, {"window": 2}):
        with pytest.raises(ValueError, match="mention_scorer"):
            MentionPairs(**wrong)
    part = find_linker(nlp).mention_scorer
    with pytest.raises(ValueError, match="E910"):
        replace(part, window=17).from_bytes(part.to_bytes())
    assert "scorer" not in repr(MentionPairs())
    assert not part.from_bytes(b"").is_trained
