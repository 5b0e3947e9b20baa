"""Readers of downloads that one experiment uses each, for ``--format`` with ``--code readers.py``.

The files are those of ``assets`` in project.yml and are trusted: errors
in them are Python errors.
"""

import gzip
import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from spacy_arbo_el.corpora.annotated import AnnotatedMention, AnnotatedText
from spacy_arbo_el.corpora.convert import strip_prefix
from spacy_arbo_el.kb.entity import Entity
from spacy_arbo_el.kb.importers import ImportReport
from spacy_arbo_el.records.formats import corpus_formats, entity_formats
from spacy_arbo_el.records.lines import OnBad, throw
from spacy_arbo_el.records.objects import read_records
from spacy_arbo_el.records.source import Source

DISEASE = ("Disease",)


# Entities


@entity_formats("medic_half")
@dataclass(frozen=True)
class MedicHalf:
    """Reads BioCoM's dictionary, half of MEDIC's names.

    About one concept in six has lost all its names, and is unnamed.

    The folder contains ``disease_down_half.tsv`` and ``concept_map.json``.
    """

    def read(self, path: Path, report: ImportReport | None = None) -> Iterator[Entity]:
        concepts = json.loads((path / "concept_map.json").read_text("utf8"))
        concept_of = {id_: concept for concept, ids in concepts.items() for id_ in ids}
        names: dict[str, list[str]] = defaultdict(list)
        for line in (path / "disease_down_half.tsv").read_text("utf8").splitlines():
            name, ids = json.loads(line)
            for concept in dict.fromkeys(concept_of[id_] for id_ in ids):
                names[concept].append(name.strip())
        for concept, ids in concepts.items():
            title, *aliases = dict.fromkeys(names.get(concept, [concept]))
            meta = {"ids": list(dict.fromkeys([concept, *ids]))}
            if concept not in names:
                meta["unnamed"] = True
            yield Entity(
                concept, title, aliases=tuple(aliases), types=DISEASE, meta=meta
            )


@entity_formats("medic_2012")
@dataclass(frozen=True)
class Medic2012:
    """Reads the MEDIC of July 2012: ``id[|id…]||name[|synonym…]`` per line."""

    def read(self, path: Path, report: ImportReport | None = None) -> Iterator[Entity]:
        for line in (path / "medic_06Jul2012.txt").read_text("utf8").splitlines():
            ids, names = (
                [s.strip() for s in p.split("|") if s.strip()]
                for p in line.split("||")
            )
            title, *aliases = dict.fromkeys(names)
            yield Entity(
                ids[0], title, aliases=tuple(aliases), types=DISEASE, meta={"ids": ids}
            )


@entity_formats("ctd_disease")
@dataclass(frozen=True)
class CtdDisease:
    """Reads CTD's disease names of 2026 as BeLink has them: one id and one name an entry.

    The folder contains ``terminology.json.gz``.
    """

    def read(self, path: Path, report: ImportReport | None = None) -> Iterator[Entity]:
        names: dict[str, list[str]] = defaultdict(list)
        for entry in json.loads(
            gzip.decompress((path / "terminology.json.gz").read_bytes())
        ):
            names[strip_prefix(entry["id"])].append(entry["name"].strip())
        for id_, (title, *aliases) in names.items():
            yield Entity(
                id_, title, aliases=tuple(dict.fromkeys(aliases)), types=DISEASE
            )


@entity_formats("medic")
@dataclass(frozen=True)
class Medic:
    """Reads CTD's MEDIC, ``CTD_diseases.tsv``, with ``|`` between several values of a column.

    The columns are name, id, other ids, definition, parents, places in the tree, the parents'
    places, and synonyms. Lines that begin with ``#`` are comments. Other ids lead to the entity.
    """

    def read(self, path: Path, report: ImportReport | None = None) -> Iterator[Entity]:
        report = report or ImportReport()
        for line in path.read_text("utf8").splitlines():
            if not line.strip() or line.startswith("#"):
                continue
            title, id_, others, definition, _, tree, _, synonyms = line.split("\t")[:8]
            ids = list(map(strip_prefix, [id_, *_parts(others)]))
            report.redirect(ids[1:], ids[0])
            meta = {"ids": ids, "tree": _parts(tree)}
            aliases = tuple(dict.fromkeys(_parts(synonyms)))
            yield Entity(ids[0], title, definition, aliases, DISEASE, meta=meta)


def _parts(text: str) -> list[str]:
    return [part.strip() for part in text.split("|") if part.strip()]


@entity_formats("fb15k")
@dataclass(frozen=True)
class Fb15k:
    """Reads Wikidata's entities of FB15k-237, ``entity2wikidata.json``.

    The title is that of the Wikipedia article, or the label. ``meta["ids"]`` has the ids of
    Wikidata and Freebase, and the title of the article. Entries without a name are left out.
    """

    def read(self, path: Path, report: ImportReport | None = None) -> Iterator[Entity]:
        report = report or ImportReport()
        seen = set()
        for freebase, entry in json.loads(path.read_text("utf8")).items():
            id_, label = entry["wikidata_id"], entry["label"]
            article = title_of_address(entry["wikipedia"] or "")
            title = article or label
            if title == id_:
                report.skip("no name")
                continue
            ids = [id_, freebase, *([article] if article else [])]
            report.redirect(ids[1:], id_)
            if id_ in seen:
                report.skip("another entry has the same id of Wikidata")
                continue
            seen.add(id_)
            names = dict.fromkeys([label, *(entry["alternatives"] or [])])
            aliases = tuple(name for name in names if name and name != title)
            yield Entity(
                id_, title, entry["description"] or "", aliases, meta={"ids": ids}
            )


@entity_formats("zelda")
@dataclass(frozen=True)
class ZeldaTitles:
    """Reads the articles that the mentions of ZELDA files link to.

    The id is the title. The number of the article leads to it.

    It reads a file, or a folder of ``.jsonl`` files.
    """

    def read(self, path: Path, report: ImportReport | None = None) -> Iterator[Entity]:
        report = report or ImportReport()
        seen = set()
        for file in sorted(path.glob("*.jsonl")) if path.is_dir() else [path]:
            for _, record in read_records(Source(file)):
                numbers = record["wikipedia_ids"]
                for title, number in zip(
                    map(article_title, record["wikipedia_titles"]), numbers
                ):
                    report.redirect([str(number)], title)
                    if title not in seen:
                        seen.add(title)
                        yield Entity(title)


def article_title(title: str) -> str:
    """A title as Wikipedia shows it, with spaces."""
    return " ".join(title.replace("_", " ").split())


def title_of_address(address: str) -> str:
    """The title in the address of an article, "" if it has none; decoded once."""
    _, _, title = address.partition("/wiki/")
    return article_title(
        unquote(title.partition("#")[0].partition("?")[0], errors="strict")
    )


# Corpora


@corpus_formats("zelda")
@dataclass(frozen=True)
class Zelda:
    """Reads ZELDA: JSONL with ``text``, ``index`` (offsets) and ``wikipedia_titles``.

    A mention that ends after its text is left out: test_wned-wiki.jsonl has one.
    """

    def read(
        self, path: Path, bad: OnBad = throw, counts: Counter | None = None
    ) -> Iterator[AnnotatedText]:
        for _, record in read_records(Source(path, bad)):
            text, titles = (
                record["text"],
                map(article_title, record["wikipedia_titles"]),
            )
            mentions = (
                AnnotatedMention(start, end, "ENTITY", (title,))
                for (start, end), title in zip(record["index"], titles)
                if end <= len(text)
            )
            yield AnnotatedText(str(record["id"]), text, tuple(mentions))


@corpus_formats("medmentions")
@dataclass(frozen=True)
class MedMentions:
    """Reads MedMentions as JSONL of tokenized sentences, joined by spaces.

    {"pmid": "1", "sents": [{"tokens": ["Cystic", "fibrosis", "."],
                             "mentions": [[0, 2, "C0010674", "cystic fibrosis"]]}]}

    A mention consists of its first token, the token after its last, and its concept.
    """

    def read(
        self, path: Path, bad: OnBad = throw, counts: Counter | None = None
    ) -> Iterator[AnnotatedText]:
        for _, record in read_records(Source(path, bad)):
            words: list[str] = []
            mentions = []
            for sentence in record["sents"]:
                tokens = sentence["tokens"]
                for first, after, concept, *_ in sentence["mentions"]:
                    start = sum(len(word) + 1 for word in [*words, *tokens[:first]])
                    end = start + len(" ".join(tokens[first:after]))
                    mentions.append(
                        AnnotatedMention(start, end, "CONCEPT", (concept,))
                    )
                words += tokens
            yield AnnotatedText(record["pmid"], " ".join(words), tuple(mentions))
