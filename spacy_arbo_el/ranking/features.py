"""The candidates of mentions, and their features: similarities of vectors and of strings."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ..base.arrays import Rows, TopK, at_columns, first_columns, take_or
from ..base.bundled import are_english_words
from ..names.comparison import EXTRA, NGRAMS, WORDS
from ..names.string_features import SAME_STRING
from ..retrieval.neighbours import AllowedEntities, Neighbours

if TYPE_CHECKING:
    from ..mentions.record import MentionRecord
    from ..retrieval.entity_strings import EntityStrings

# How many candidates a mention has, at most, because its surface form is one of their strings.
MAX_SAME_STRING = 128
# Where these are many, so many of the nearest others are candidates as well.
MIN_OTHERS = 8
# Exemplars that are less similar say nothing of a mention.
NEAR_EXEMPLAR = 0.6

# Of names as similar as this to the most similar one, only the context can tell which is meant.
SAME_NAME = 0.98
# Words that a name lacks may be so large a part of a mention that it contains, such as a full stop.
NO_EXTRA = 0.05
# Where more names contain a mention, it is a common word of the list, such as "cell".
MOST_CONTAINING = 10
# Candidates of a mention whose descriptions are read.
MAX_DESCRIBED = 8
# A larger lead in similarity of context says no more.
MOST_LEAD = 0.5
# The share of the log of the frequencies' ratio that counts among entities of one name.
FREQUENCY_WEIGHT = 0.5
# Frequency makes no entity less probable than by these log-odds.
MOST_BY_FREQUENCY = 5.0
# A lead in similarity of context that halves the weight of frequency.
CLEAR_LEAD = 0.1

NAME_FEATURES = (
    "name",  # similarity of vectors to the entity's nearest text
    "exemplar",  # similarity of vectors to its nearest exemplar, or to that text if none is near
    "nearest",  # the larger of the two
    "name_ngrams",  # similarity of n-grams to the most similar name
    "exemplar_ngrams",  # similarity of n-grams to the most similar surface form of an exemplar
    "ngrams",  # the larger of the two
    "name_words",  # share of words in common with a name
    "words",  # share of words in common with a name or surface form
    "name_numbers",  # 1 if a name has the same numbers
    "numbers",  # 1 if a name or surface form has the same numbers
    "extra",  # share of the mention in words that the most similar string lacks
    "missing",  # share of that string in words that the mention lacks
    "swapped",  # the smaller of the two: another word stands in the place of one
    "opposed",  # 1 if numbers differ, or words such as hyper- and hypo-
    "exact",  # 1 if a name is the mention, letter for letter
    "title",  # 1 if the title is the mention, in any case
    "has_exemplar",  # 1 if the entity has an exemplar
    "attested",  # share of the exemplars with the mention's surface form that are the entity's
)
CONTEXT_FEATURES = (
    "described",  # 1 if its description was compared with the context
    "fit",  # similarity of the context to its text: title, and description if it has one
    "beyond",  # how much that is above the similarity to its title alone
    # How much better its text fits the contexts of the mention's string in the document than that
    # of any other candidate whose names are as similar.
    "shared_lead",
)
FEATURES = (
    *NAME_FEATURES,
    *CONTEXT_FEATURES,
    "contains",  # 1 if a name contains the mention as its head, or begins with it as a proper name
)
# Columns of the features that candidates are compared by. The others say whether the best one is
# right: a fit over all candidates was learned from one domain and harmed others.
COMPARED = (
    *range(len(NAME_FEATURES)),
    FEATURES.index("shared_lead"),
    FEATURES.index("contains"),
)
OF_CONTEXT = slice(len(NAME_FEATURES), len(NAME_FEATURES) + len(CONTEXT_FEATURES))


@dataclass(frozen=True)
class ContextFits:
    """The fit of candidates' texts to the contexts of ``m`` mentions.

    Arrays are (m, c) float32.

    fit: The cosine of the context and the candidate's text.
    beyond: How much that is above the cosine with the title alone; 0 where that is all there is.
    shared: The cosine with the mean context of the mention's string in its document.
    described: 1 where there is a description, 0 where the entity has none, -1 where nothing was
        compared.
    """

    fit: np.ndarray
    beyond: np.ndarray
    shared: np.ndarray
    described: np.ndarray

    @classmethod
    def none(cls, shape: tuple[int, ...]) -> "ContextFits":
        """Those where nothing was compared."""
        zeros = np.zeros(shape, dtype=np.float32)
        return cls(
            zeros, zeros.copy(), zeros.copy(), np.full(shape, -1, dtype=np.float32)
        )


@dataclass(frozen=True)
class CandidateFeatures(Rows):
    """The candidates of ``m`` mentions with their features.

    entities: (m, c) int64 positions in the KB, -1 for none.
    features: (m, c, len(FEATURES)) float32, 0 where there is no candidate.
    exemplars: (m, c) int64, the row of the entity's nearest exemplar; -1 where no exemplar of it is
        among the neighbours, or a text of the entity is as similar.
    prior: (m, c) float32, log-odds by frequency among the entities of one name, 0 for the most
        frequent.
    """

    entities: np.ndarray
    features: np.ndarray
    exemplars: np.ndarray
    prior: np.ndarray

    @property
    def valid(self) -> np.ndarray:
        """(m, c) bool, where there is a candidate."""
        return self.entities >= 0

    def where(self, keep: np.ndarray) -> "CandidateFeatures":
        """The same with none in the place of the others. keep: (m, c) bool."""
        return CandidateFeatures(
            np.where(keep, self.entities, -1),
            np.where(keep[:, :, None], self.features, np.float32(0)),
            np.where(keep, self.exemplars, -1),
            np.where(keep, self.prior, np.float32(0)),
        )

    def column(self, name: str) -> np.ndarray:
        """(m, c) float32, one feature."""
        return self.features[:, :, FEATURES.index(name)]

    def frequency_prior(self) -> np.ndarray:
        """(m, c) float64, log-odds by frequency, 0 for the most frequent entity of a name.

        It counts the less, the more one of the entities leads by its context.
        """
        lead = self.column("shared_lead").max(axis=1, keepdims=True, initial=0.0)
        prior = np.maximum(self.prior.astype(np.float64), -MOST_BY_FREQUENCY)
        return prior / (1.0 + lead / CLEAR_LEAD)

    def with_contexts(self, fits: ContextFits) -> "CandidateFeatures":
        """The same with features of the context.

        A candidate that was not compared fits as the mean of the others.
        """
        read = (fits.described >= 0) & self.valid
        same = read & namesakes(self)
        context_features = [
            read & (fits.described > 0),
            _or_mean(fits.fit, read),
            np.where(read, fits.beyond, np.float32(0)),
            _lead(fits.shared, same),
        ]
        features = self.features.copy()
        features[:, :, OF_CONTEXT] = np.stack(context_features, axis=2)
        features[~self.valid] = 0
        return replace(self, features=features)

    def name_similarity(self) -> np.ndarray:
        """(m, c) float32, cosine of vectors plus cosine of n-grams; -inf for no candidate."""
        similarity = self.column("nearest") + self.column("ngrams")
        return np.where(self.valid, similarity, -np.inf)

    def worth_describing(self) -> np.ndarray:
        """(m, c) bool, the candidates whose descriptions are worth a look.

        They are those with the most similar names, and all whose name could be the mention.
        """
        order = np.argsort(-self.name_similarity(), axis=1, kind="stable")
        rank = np.empty_like(order)
        np.put_along_axis(rank, order, np.arange(order.shape[1])[None], axis=1)
        owners = (self.column("ngrams") >= SAME_STRING).sum(axis=1, keepdims=True)
        return self.valid & (
            (rank < np.maximum(owners, MAX_DESCRIBED)) | containing(self)
        )


def namesakes(candidates: CandidateFeatures) -> np.ndarray:
    """(m, c) bool, the candidates whose name could be the mention.

    Their names are as similar as the most similar name, or contain the mention.
    """
    ngrams = np.where(candidates.valid, candidates.column("ngrams"), -1.0)
    top = ngrams.max(axis=1, keepdims=True, initial=-1.0)
    return candidates.valid & ((ngrams >= SAME_NAME * top) | containing(candidates))


def containing(candidates: CandidateFeatures) -> np.ndarray:
    """(m, c) bool, the candidates with a name that contains the mention, where these are few."""
    contains = candidates.valid & (candidates.column("contains") > 0)
    return contains & (contains.sum(axis=1, keepdims=True) <= MOST_CONTAINING)


def _lead(fit: np.ndarray, among: np.ndarray) -> np.ndarray:
    """Lead of each description in its fit over the best other: (m, c) float32.

    among: (m, c) bool, the candidates that are compared; 0 for the rest, and for one alone.
    """
    among = among & (among.sum(axis=1, keepdims=True) > 1)
    if not among.any():
        return np.zeros(fit.shape, dtype=np.float32)
    values = np.where(among, fit, -np.inf)
    two = -np.partition(-values, 1, axis=1)[:, :2]
    best_other = np.where(values >= two[:, :1], two[:, 1:], two[:, :1])
    with np.errstate(invalid="ignore"):
        lead = np.clip(values - best_other, -MOST_LEAD, MOST_LEAD)
    return np.where(among, lead, 0.0).astype(np.float32)


def _or_mean(values: np.ndarray, is_known: np.ndarray) -> np.ndarray:
    """Values (m, c), with the mean of the known ones of the row in the place of the others."""
    counts = np.maximum(is_known.sum(axis=1, keepdims=True), 1)
    mean = np.where(is_known, values, 0).sum(axis=1, keepdims=True) / counts
    return np.where(is_known, values, mean).astype(np.float32)


def gather_features(
    neighbours: Neighbours,
    records: Sequence["MentionRecord"],
    entity_strings: "EntityStrings",
    allowed: AllowedEntities | None,
    count: int,
    withheld: np.ndarray | None = None,
) -> CandidateFeatures:
    """Choose the candidates of mentions, and compute their features.

    records: The m mentions.
    allowed: Which entities each mention may be linked to; None for all.
    count: How many candidates a mention has at most.
    withheld: (entities,) bool, the entities that count as without exemplars; none of theirs may be
        among the neighbours.
    """
    same = entity_strings.owners(records, MAX_SAME_STRING, withheld)
    beginning = entity_strings.beginning_with(records, MOST_CONTAINING)
    entities = _choose_candidates(neighbours, same, beginning, allowed, count)
    name, exemplar, rows = _vector_similarity(entities, neighbours, entity_strings)
    strings = [record.normalized for record in records]
    similarity = entity_strings.similarity(strings, entities)
    has_exemplar = entity_strings.has_exemplar[entities]
    if withheld is not None:
        hidden = take_or(withheld, entities, False)
        has_exemplar = has_exemplar & ~hidden
        for _, of_exemplars in similarity:
            of_exemplars[hidden] = 0
    features = [name, exemplar, np.maximum(name, exemplar)]
    ngrams = similarity[NGRAMS]
    features += [*ngrams, ngrams.max(axis=0)]
    for view in similarity[WORDS:EXTRA]:
        features += [view[0], view.max(axis=0)]
    # What the more similar of name and surface form differs by.
    by_exemplar = ngrams[1] > ngrams[0]
    extra, missing, opposed, begins, ends = (
        np.where(by_exemplar, field[1], field[0]) for field in similarity[EXTRA:]
    )
    opposed = np.maximum(opposed, entity_strings.differ_as_formulas(records, entities))
    features += [extra, missing, np.minimum(extra, missing), opposed]
    same_string = (entities >= 0) & (ngrams.max(axis=0) >= SAME_STRING)
    features += entity_strings.written_as(records, entities, same_string)
    features.append(has_exemplar)
    features.append(entity_strings.attested(records, entities, withheld))
    features += [np.zeros(entities.shape)] * len(CONTEXT_FEATURES)
    features.append(_contain(records, ends, begins, same_string, extra, opposed))
    stacked = np.stack(features, axis=2).astype(np.float32)
    stacked[entities < 0] = 0
    prior = _prior(entity_strings.frequencies(entities), same_string)
    return CandidateFeatures(entities, stacked, rows, prior)


def _contain(
    records: Sequence["MentionRecord"],
    ends: np.ndarray,
    begins: np.ndarray,
    same_string: np.ndarray,
    extra: np.ndarray,
    opposed: np.ndarray,
) -> np.ndarray:
    """(m, c) bool, the candidates with a name that a mention may be a part of.

    A proper name may be its beginning, such as "Halix" of "Halix Oil & Gas". Another mention is its
    head: "genetic" is not "genetic marker". It is not even that where the list has the mention
    itself: "consensus" is not "Kozak consensus". The capital at the beginning of a sentence makes
    no proper name of words that the list has: "Tumor".

    ends, begins, extra, opposed: (m, c), see ``names/comparison.py``.
    same_string: (m, c) bool, the candidates with the mention as a name.
    """
    in_list = same_string.any(axis=1, keepdims=True)
    capitals = [record.normalized[:1].isupper() for record in records]
    ordinary = [
        record.begins_sentence and are_english_words(record.normalized)
        for record in records
    ]
    is_upper = np.array(capitals, dtype=bool)[:, None]
    is_ordinary = np.array(ordinary, dtype=bool)[:, None] & in_list
    is_proper = is_upper & ~is_ordinary
    is_part = (ends > 0) | ((begins > 0) & is_proper)
    may_be_part = is_proper | same_string | ~in_list
    return is_part & may_be_part & (extra <= NO_EXTRA) & (opposed == 0)


def _prior(frequencies: np.ndarray, same_string: np.ndarray) -> np.ndarray:
    """Log-odds by frequency, (m, c) float32, 0 for the most frequent entity of a string.

    An unknown frequency counts as the least that is known.

    frequencies: (m, c) float, 0 where it is unknown.
    same_string: (m, c) bool, the entities that have the string of the mention.
    """
    known_frequencies = np.where(same_string & (frequencies > 0), frequencies, np.inf)
    least = known_frequencies.min(axis=1, keepdims=True, initial=np.inf)
    counts = np.where(frequencies > 0, frequencies, least)
    counts = np.where(same_string & np.isfinite(least), counts, 1.0)
    top = np.where(same_string, counts, 0.0).max(axis=1, keepdims=True, initial=0.0)
    ratio = np.log(counts / np.where(top > 0, top, 1.0))
    return np.where(same_string, FREQUENCY_WEIGHT * ratio, 0.0).astype(np.float32)


def _choose_candidates(
    neighbours: Neighbours,
    same: np.ndarray,
    beginning: np.ndarray,
    allowed: AllowedEntities | None,
    count: int,
) -> np.ndarray:
    """(m, count) int64 positions, -1 for none.

    same: (m, s) int64, entities with the string of the mention, -1 for none.
    beginning: (m, b) int64, those with a name that begins with it.
    """
    if allowed is not None:
        same = allowed.restrict(same)
        beginning = allowed.restrict(beginning)
    near_entities = np.where(
        neighbours.exemplars.scores >= NEAR_EXEMPLAR, neighbours.exemplar_entities, -1
    )
    # Entities with the same string first, whatever else is near. Those of exemplars and those with
    # a longer name next: they are few, and may be far down the list of entities.
    nearest = neighbours.entities.first(count).ids
    entities = np.concatenate([same, near_entities, beginning, nearest], axis=1)
    n_others = min(MIN_OTHERS, count // 3)
    limit = np.maximum(count, (same >= 0).sum(axis=1) + n_others)
    columns = first_columns(entities, int(limit.max(initial=count)))
    columns[np.arange(columns.shape[1]) >= limit[:, None]] = -1
    return at_columns(entities, columns, -1)


def _vector_similarity(
    entities: np.ndarray, neighbours: Neighbours, entity_strings: "EntityStrings"
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The similarity of vectors to candidates' texts and to their exemplars.

    RETURNS: (m, c) float32 each, and (m, c) int64, as ``CandidateFeatures.exemplars``.
    """
    exemplars = TopK(neighbours.exemplar_entities, neighbours.exemplars.scores)
    name, _ = _similarity_of(entities, neighbours.entities)
    exemplar, column = _similarity_of(entities, exemplars)
    is_near = (column >= 0) & (exemplar >= NEAR_EXEMPLAR)
    rows = at_columns(
        neighbours.exemplars.ids, np.where(exemplar > name, column, -1), -1
    )
    # An entity without a name has no text that could be similar.
    only_id = entity_strings.has_only_id(entities)
    name = np.where(only_id & is_near, np.maximum(name, exemplar), name)
    # An entity without a near exemplar is as if the exemplar were its name.
    exemplar = np.where(is_near, exemplar, name)
    return name, exemplar, rows


def _similarity_of(
    entities: np.ndarray, owners: TopK
) -> tuple[np.ndarray, np.ndarray]:
    """Similarity and column of each candidate among ``owners``. The first occurrence counts.

    A candidate that does not occur there gets the smallest similarity of the row: it can't be
    larger. Its column is -1.
    """
    columns = owners.columns_of(entities)
    return at_columns(owners.scores, columns, owners.least), columns
