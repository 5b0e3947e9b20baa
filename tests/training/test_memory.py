"""The memory that training takes, measured in separate processes."""

import os
import subprocess
import sys

import pytest
import torch

from benchmarks.memory import peak_megabytes, resident_megabytes

MEGABYTE = 1 << 20

SCRIPT = """
import random, sys
from thinc.api import Adam
from spacy_arbo_el.kb.entity import Entity
from spacy_arbo_el.base.memory import bound_caches
from tests.linker.conftest import build
from tests.linker.world import examples
from benchmarks.memory import peak_megabytes

kept, size = map(int, sys.argv[1:])
bound_caches()
rng = random.Random(0)
words = "river stone cloud paper engine garden window silver music winter".split()
MODEL = {"mention": {"kept_tokens": kept, "train_tokens": 1024, "window": 64}}
entities = [Entity(f"e{i}", f"{rng.choice(words)} {i}") for i in range(64)]
def text(i):
    some = " ".join(rng.choices(words, k=50))
    return f"{some} the [{words[i % 10]} {i}|e{i % 64}] {some}."
texts = [text(i) for i in range(128)]
nlp = build(entities, train=texts, model=MODEL)
data, optimizer = examples(nlp, texts), Adam(1e-5)
for _ in range(2):
    nlp.update(data[:32], sgd=optimizer)
small = peak_megabytes()
nlp.update(data[:size], sgd=optimizer)
print(peak_megabytes() - small)
"""


def growth(kept_tokens: int, size: int) -> int:
    """The peak memory of a batch of this size beyond that of a batch of 32, in MB."""
    # One arena for all threads, so that the measurement does not depend on the allocator.
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "MALLOC_ARENA_MAX": "1"}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(kept_tokens), str(size)],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return int(done.stdout.split()[-1])


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not say")
def test_batch_of_128_trains_in_the_memory_of_a_batch_of_32():
    # Vectors, gradients and ids of 4 times as many passages take 3 MB, the rest is between blocks.
    assert growth(1024, 128) < 128
    # With all activations kept it takes more, which the measurement must show.
    assert growth(10**9, 128) > 256


SHAPES = """
import ctypes, sys
import numpy as np
from spacy_arbo_el.encoders.inputs import SpanInputs
from spacy_arbo_el.base.memory import bound_caches
from tests.tiny import dual_encoder

class Usage(ctypes.Structure):
    names = "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost"
    _fields_ = [(name, ctypes.c_size_t) for name in names.split()]

if sys.argv[1] == "bounded":
    bound_caches()
libc = ctypes.CDLL(None)
libc.mallinfo2.restype = Usage
def used():
    usage = libc.mallinfo2()
    return usage.uordblks + usage.hblkhd
tower = dual_encoder(sys.argv[2], precision="bfloat16").model.get_ref("mention")
def step(i):
    # Each step has another number of passages, of another length.
    length, n = 8 + i % 16, 20 + i
    ids, one = np.full(n * length, 7, dtype=np.int32), np.ones(n, dtype=np.int32)
    places = np.arange(n + 1, dtype=np.int64) * length
    inputs = SpanInputs.one_span_each(ids, places, one, one, one)
    vectors, backprop = tower.begin_update(inputs)
    backprop(np.ones_like(vectors))
for i in range(40):
    step(i)
before = used()
for i in range(40, 80):
    step(i)
print(used() - before)
"""


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.skipif(
    sys.platform != "linux" or not torch.cpu._is_avx512_bf16_supported(),
    reason="programs are compiled for bfloat16, which the CPU must have",
)
def test_programs_that_are_compiled_for_each_shape_do_not_fill_the_memory(tiny_bert):
    def growth_in(kind: str) -> float:
        command = [sys.executable, "-c", SHAPES, kind, str(tiny_bert)]
        environment = {**os.environ, "HF_HUB_OFFLINE": "1"}
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return float(done.stdout.split()[-1])

    assert growth_in("bounded") < 4 * MEGABYTE
    # Not every CPU has kernels that are compiled for each shape. Where it has, the test can fail.
    unbounded = growth_in("unbounded")
    assert unbounded < 4 * MEGABYTE or unbounded > 8 * MEGABYTE


PEAK = "from benchmarks.memory import *; print(peak_megabytes())"
FREED = """
import ctypes
from spacy_arbo_el.base.memory import release_memory
# Small blocks, of which every 2,000th stays: what is between them goes back only when asked to.
malloc, free = ctypes.CDLL(None).malloc, ctypes.CDLL(None).free
malloc.restype, free.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
blocks = [malloc(16_000) for _ in range(20_000)]
for block in blocks:
    ctypes.memset(block, 1, 16_000)
for number, block in enumerate(blocks):
    if number % 2000:
        free(block)
before = resident_megabytes()
release_memory()
print(before - resident_megabytes())
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not say")
def test_the_peak_is_that_of_the_process_itself_and_free_memory_goes_back_to_the_system():
    def numbers(code):
        return list(map(int, subprocess.check_output([sys.executable, "-c", code]).split()))

    alone, freed = numbers(PEAK + FREED)
    if "glibc" in os.confstr("CS_GNU_LIBC_VERSION").lower():
        assert freed > 200
    # More than this process has ever had.
    large = torch.ones(peak_megabytes() - resident_megabytes() + 512, MEGABYTE // 4)
    assert numbers(PEAK)[0] < alone + 64
    del large
