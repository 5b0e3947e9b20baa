"""Names of a large knowledge base: encoded by the default encoder, and searched exactly.

    python benchmarks/names.py [--names 2300000] [--sample 20000] [--gpu-id 0] [--output FILE]

The names are made of words, numbers and greek letters, of two to eight words each. ``--sample`` are
those that are encoded, 0 for all; the time for all names is computed from it, and said to be. The
search is over as many vectors as there are names; those that were not encoded are random.
"""

import argparse
import json
import resource
import time
from pathlib import Path

import numpy as np
import spacy
import torch
from thinc.api import require_gpu

from spacy_arbo_el.base.arrays import unit
from spacy_arbo_el.retrieval.index.exact import nearest

WORDS = """acute chronic renal hepatic cardiac syndrome disease carcinoma familial juvenile severe
type deficiency receptor factor protein kinase inhibitor growth cell membrane alpha beta gamma north
new river county station school company bank museum tower football club international"""
QUERIES, K = 2048, 64


def made_names(count: int) -> list[str]:
    """Names of two to eight words, all different."""
    rng, known = np.random.default_rng(0), WORDS.split()
    lengths = rng.integers(1, 8, size=count)
    words = rng.integers(len(known), size=int(lengths.sum()))
    parts = np.split(words, np.cumsum(lengths)[:-1])
    return [f"{' '.join(known[i] for i in part)} {n}" for n, part in enumerate(parts)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--names", type=int, default=2_300_000)
    parser.add_argument(
        "--sample", type=int, default=0, help="names to encode; 0 for all"
    )
    parser.add_argument("--gpu-id", type=int, default=-1)
    parser.add_argument("--output", type=Path)
    args = parser.parse_args()
    if args.gpu_id >= 0:
        require_gpu(args.gpu_id)
    encoder = spacy.blank("en").add_pipe("arbo_linker").encoder
    encoder.require_ready("arbo_linker")
    names = made_names(args.sample or args.names)
    encoder.encode_texts(encoder.read_texts([(name, "") for name in names[:256]]))
    start = time.perf_counter()
    inputs = encoder.read_texts([(name, "") for name in names])
    read = time.perf_counter() - start
    vectors = encoder.encode_texts(inputs)
    seconds = time.perf_counter() - start
    rows: dict[str, float] = {
        "names": args.names,
        "encoded": len(names),
        "names a second": len(names) / seconds,
        "share of reading": read / seconds,
        "seconds for all names": seconds * args.names / len(names),
    }
    rng = np.random.default_rng(1)
    rest = rng.standard_normal(
        (args.names - len(names), vectors.shape[1]), dtype=np.float32
    )
    vectors = unit(np.concatenate([vectors, rest]))
    device = "cuda" if args.gpu_id >= 0 else "cpu"
    index = torch.from_numpy(vectors).to(device)
    queries = vectors[rng.integers(len(names), size=QUERIES)]
    nearest(queries[:8], index, K, "ip")
    start = time.perf_counter()
    found = nearest(queries, index, K, "ip")
    rows[f"seconds for {QUERIES} queries"] = time.perf_counter() - start
    rows["found itself"] = float((found.scores[:, 0] > 0.999).mean())
    rows["peak MB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    for name, value in rows.items():
        print(f"{name}: {value:,.3f}")
    if args.output:
        args.output.write_text(json.dumps(rows, indent=2))


if __name__ == "__main__":
    main()
