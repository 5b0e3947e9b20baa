"""The memory that a large batch trains in, measured in a separate process."""

import os
import subprocess
import sys

import pytest

MEGABYTE = 1 << 20

SCRIPT = """
import random, resource, sys
from thinc.api import Adam
from spacy_arbo_el.kb.entity import Entity
from tests.linker.conftest import build
from tests.linker.world import examples

kept, size = map(int, sys.argv[1:])
rng = random.Random(0)
words = "river stone cloud paper engine garden window silver music winter".split()
entities = [Entity(f"e{i}", f"{rng.choice(words)} {i}") for i in range(64)]
def text(i):
    some = " ".join(rng.choices(words, k=50))
    return f"{some} the [{words[i % 10]} {i}|e{i % 64}] {some}."
texts = [text(i) for i in range(512)]
nlp = build(entities, train=texts, model={"mention": {"kept_tokens": kept, "window": 64}})
data, optimizer = examples(nlp, texts), Adam(1e-5)
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
for _ in range(2):
    nlp.update(data[:32], sgd=optimizer)
small = peak()
nlp.update(data[:size], sgd=optimizer)
print(peak() - small)
"""


def growth(kept_tokens: int, size: int) -> float:
    """The peak memory of a batch of this size beyond that of a batch of 32, in bytes."""
    # One arena for all threads, so that the measurement does not depend on the allocator.
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "MALLOC_ARENA_MAX": "1"}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(kept_tokens), str(size)],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return float(done.stdout.split()[-1])


@pytest.mark.slow
def test_batch_of_512_trains_in_the_memory_of_a_batch_of_32():
    # The default. Vectors, gradients and ids of 16 times as many passages take 5 MB.
    assert growth(16384, 512) < 32 * MEGABYTE
    # With all activations kept, a batch of 128 takes a gigabyte, which the measurement must show.
    assert growth(10**9, 128) > 512 * MEGABYTE
