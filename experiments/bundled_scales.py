"""Write the scales of the bundled encoder's 8-bit layers, which the package brings along.

    python experiments/bundled_scales.py

Run it on a CPU with AVX2, and again when ``encoders/quantization.py`` finds scales in another way.
"""

import safetensors.torch

from spacy_arbo_el.base.bundled import BUNDLED
from spacy_arbo_el.encoders.loading import load_pretrained
from spacy_arbo_el.encoders.quantization import find_scales
from spacy_arbo_el.encoders.quantized import BUNDLED_SCALES
from spacy_arbo_el.encoders.word_pieces import WordPieceTokenizer

if __name__ == "__main__":
    tokenizer, transformer = load_pretrained(BUNDLED, "eager")
    scales = find_scales(transformer.eval(), WordPieceTokenizer(tokenizer))
    safetensors.torch.save_file(dict(scales), BUNDLED_SCALES)
    print(f"{BUNDLED_SCALES.name}: {len(scales)} layers")
