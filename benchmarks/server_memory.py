"""What the memory of ``arbo serve`` is spent on.

    python benchmarks/server_memory.py [--kb KB]

It loads one step after the other in this process, over the demo's entities or another knowledge
base, and prints what each adds to the resident memory (``/proc``, Linux only).
"""

import argparse
import gc
import sys
from pathlib import Path

from memory import resident_megabytes

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))


def print_memory(kb: str | None) -> None:
    """Load one step after the other."""
    last = 0

    def note(what: str) -> None:
        nonlocal last
        gc.collect()
        now = resident_megabytes()
        print(f"{what:<55} {now - last:5} MB  (so far {now})", flush=True)
        last = now

    note("Python")
    import spacy

    note("spaCy, thinc, NumPy, and torch, which thinc imports")
    import spacy_arbo_el.linker

    note("this package, with scikit-learn, SciPy and Numba")
    import uvicorn  # noqa: F401

    import spacy_arbo_el.contrib.review.serve.app  # noqa: F401

    note("FastAPI and Uvicorn")
    nlp = spacy.blank("en")
    nlp.add_pipe("arbo_names")
    linker = nlp.add_pipe("arbo_linker")
    note("transformers and tokenizers")
    linker.set_kb(kb or ROOT / "assets" / "entities.jsonl")
    note(f"{linker.kb}")
    linker.encoder.require_ready("arbo_linker")
    note("the weights of the encoder")
    linker.refresh()
    note("vectors of the names")
    nlp("It is a disease of the heart.")
    note("names by words and by character n-grams, compiled code")
    list(nlp.pipe(["Diabetes and asthma are diseases. " * 20] * 32))
    note("the largest batch so far")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--kb", help="Folder or file of entities; by default the demo's"
    )
    print_memory(parser.parse_args().kb)


if __name__ == "__main__":
    main()
