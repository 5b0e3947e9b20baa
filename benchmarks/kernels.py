"""The default encoder by several kernels of a CPU: milliseconds of a batch, one thread.

    pip install onnx onnxruntime openvino
    python benchmarks/kernels.py [--output METRICS.json]

Inputs are windows of mentions (32 of 16 pieces), texts (16 of 48), contexts (8 of 96), and a single
mention (1 of 16). Each number is the smallest of five CPU times. They are without what a linker
does round the encoder.
"""

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np
import onnxruntime
import openvino
import spacy
import srsly
import torch
from onnxruntime.quantization import quantize_dynamic

from spacy_arbo_el.encoders.shim import EncoderShim, loaded_shim

SHAPES = ((32, 16), (16, 48), (8, 96), (1, 16))
ROUNDS, CALLS = 5, 6
INPUTS = ["ids", "mask"]

Run = Callable[[np.ndarray, np.ndarray], Any]


class LastStates(torch.nn.Module):
    """A transformer that gets and gives tensors alone, as exporters need."""

    def __init__(self, transformer: Any) -> None:
        super().__init__()
        self.transformer = transformer

    def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return self.transformer(input_ids=ids, attention_mask=mask).last_hidden_state


def default_shim() -> EncoderShim:
    """The default encoder, loaded."""
    linker = spacy.blank("en").add_pipe("arbo_linker")
    linker.set_kb([{"id": "A", "title": "A"}])
    linker.refresh()
    return loaded_shim(linker.model.get_ref("mention"))


def with_tensors(module: Any) -> Run:
    return lambda ids, mask: module(torch.from_numpy(ids), torch.from_numpy(mask))


def kernels(folder: Path) -> dict[str, Run]:
    """How each kernel runs a batch: ids and mask, (b, l) int64 each."""
    shim = default_shim()
    plain = LastStates(shim._model).eval()
    exported = folder / "model.onnx"
    example = tuple(map(torch.from_numpy, batch(*SHAPES[0])))
    axes = {name: {0: "batch", 1: "pieces"} for name in INPUTS}
    torch.onnx.export(
        plain, example, exported, input_names=INPUTS, dynamic_axes=axes, dynamo=False
    )
    quantized = folder / "quantized.onnx"
    quantize_dynamic(exported, quantized)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    core = openvino.Core()
    compiled = core.compile_model(
        core.read_model(exported), "CPU", {"INFERENCE_NUM_THREADS": 1}
    )
    sessions = [
        onnxruntime.InferenceSession(path, options) for path in (exported, quantized)
    ]
    with_onnx = [
        lambda ids, mask, session=session: session.run(
            None, {"ids": ids, "mask": mask}
        )
        for session in sessions
    ]
    by_fbgemm = torch.ao.quantization.quantize_dynamic(plain, {torch.nn.Linear})
    ours = LastStates(shim._quantized.of(shim._model, shim.word_pieces))
    return {
        "torch, float32": with_tensors(plain),
        "8 bits, fixed scales (oneDNN): ours": with_tensors(ours),
        "8 bits, dynamic (fbgemm)": with_tensors(by_fbgemm),
        "ONNX Runtime, float32": with_onnx[0],
        "ONNX Runtime, 8 bits, dynamic": with_onnx[1],
        "OpenVINO, float32": lambda ids, mask: compiled([ids, mask]),
    }


def batch(count: int, pieces: int) -> tuple[np.ndarray, np.ndarray]:
    ids = np.random.default_rng(0).integers(1000, 28_000, (count, pieces))
    return ids, np.ones_like(ids)


def milliseconds(run: Run, ids: np.ndarray, mask: np.ndarray) -> float:
    run(ids, mask)
    times = []
    for _ in range(ROUNDS):
        start = time.process_time()
        for _ in range(CALLS):
            run(ids, mask)
        times.append((time.process_time() - start) / CALLS)
    return round(1000 * min(times), 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path)
    args = parser.parse_args()
    torch.set_num_threads(1)
    found = {}
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        for name, run in kernels(Path(folder)).items():
            found[name] = {
                f"{n} x {k}": milliseconds(run, *batch(n, k)) for n, k in SHAPES
            }
            print(f"{name:36}", found[name], flush=True)
    if args.output is not None:
        srsly.write_json(args.output, found)


if __name__ == "__main__":
    main()
