"""``arbo kb …``: knowledge bases."""

from pathlib import Path
from typing import Callable, Dict

import typer
from spacy.cli._util import Arg, Opt
from wasabi import msg

from ._util import errors_for_people

kb_cli = typer.Typer(name="kb", help="Build and inspect knowledge bases.", no_args_is_help=True)


@kb_cli.command("build")
def build_command(
    # fmt: off
    source: Path = Arg(..., help="JSONL file, or folder or file of a MEDIC dictionary"),
    output: Path = Arg(..., help="Folder of the knowledge base"),
    format: str = Opt("jsonl", "--format", "-f", help="jsonl, medic-half or medic-2012"),
    # fmt: on
) -> None:
    """Build a knowledge base of entities. Its vectors are made when a pipeline gets it."""
    from spacy.vocab import Vocab
    from tqdm import tqdm

    from ..kb import importers
    from ..kb.knowledge_base import ArboKB

    readers: Dict[str, Callable] = {
        "jsonl": importers.read_entities_jsonl,
        "medic-half": importers.read_medic_half,
        "medic-2012": importers.read_medic_2012,
    }
    if format not in readers:
        msg.fail(f"There is no format {format!r}. Choose one of: {', '.join(readers)}.", exits=1)
    with errors_for_people():
        entities = tqdm(readers[format](source), unit=" entities", leave=False)
        kb = ArboKB(Vocab(), entities)
        kb.to_disk(output)
    msg.good(f"{output}: {len(kb)} entities, {kb.get_size_aliases()} names")


@kb_cli.command("info")
def info_command(path: Path = Arg(..., help="Folder of a knowledge base")) -> None:
    """Say what a knowledge base holds."""
    from collections import Counter

    from spacy.vocab import Vocab

    from ..kb.knowledge_base import ArboKB

    with errors_for_people():
        kb = ArboKB(Vocab()).from_disk(path)
    types = Counter(kind for entity in kb for kind in entity.types)
    shared = Counter(
        name.casefold() for entity in kb for name in {n.casefold() for n in entity.names}
    )
    msg.table(
        {
            "Entities": len(kb),
            "Names": kb.get_size_aliases(),
            "Names of several entities": sum(count > 1 for count in shared.values()),
            "Types": ", ".join(f"{kind} ({count})" for kind, count in types.most_common()) or "–",
            "With description": sum(bool(entity.description) for entity in kb),
            "Texts with vectors": len(kb.rows),
            "Encoder": kb.fingerprint or "none yet",
        }
    )
