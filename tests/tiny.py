"""Encoders small enough to test by brute force, with random weights and tokenizers of their own."""

import string

import torch
import transformers
from tokenizers import ByteLevelBPETokenizer, Tokenizer, models, pre_tokenizers

from spacy_arbo_el.encoders.dual import DualEncoder, build_dual_encoder
from spacy_arbo_el.encoders.pooling import SpanMeanPooling
from spacy_arbo_el.encoders.transformer import build_transformer_encoder

KINDS = ("bert", "distilbert", "roberta", "xlm-roberta", "mpnet", "deberta-v2", "modernbert")
WORDS = ["cold", "flu", "virus", "the", "a", "of", "river", "bank", "apple"]
POSITIONS = 48
SMALL = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
}


def save_tiny(folder, kind, seed=0, positions=POSITIONS):
    """Write a random transformer and its tokenizer.

    kind: One of ``KINDS``.
    seed: Determines the weights.
    positions: The most word pieces that it reads.
    """
    folder.mkdir(parents=True)
    if kind in ("xlm-roberta", "deberta-v2"):
        tokenizer = _unigram()
    else:
        is_byte_level = kind in ("roberta", "modernbert")
        tokenizer = _byte_level(folder) if is_byte_level else _word_piece(folder, kind)
    tokenizer.save_pretrained(str(folder))
    torch.manual_seed(seed)
    sizes = {"vocab_size": len(tokenizer), "max_position_embeddings": positions}
    if kind == "distilbert":
        config = transformers.DistilBertConfig(
            dim=16, n_layers=2, n_heads=2, hidden_dim=32, initializer_range=0.5, **sizes
        )
    else:
        if kind in ("roberta", "xlm-roberta"):
            # As the published ones have it: no second token type.
            sizes["type_vocab_size"] = 1
        if kind in ("roberta", "xlm-roberta", "mpnet"):
            # Positions start past the padding id, which is 1.
            sizes["max_position_embeddings"] += 2
        if kind == "modernbert":
            ids = dict.fromkeys(("pad", "bos", "eos", "cls", "sep"), 0)
            sizes.update({f"{name}_token_id": number for name, number in ids.items()})
        config = transformers.AutoConfig.for_model(kind, **SMALL, **sizes, initializer_range=0.5)
    transformers.AutoModel.from_config(config).save_pretrained(str(folder))
    return folder


def _word_piece(folder, kind):
    specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    if kind == "mpnet":
        specials = ["<s>", "<pad>", "</s>", "[UNK]", "<mask>"]
    characters = [*string.ascii_lowercase, *string.digits, *".,;-[]"]
    vocabulary = [*specials, *characters, *(f"##{x}" for x in characters), *WORDS]
    (folder / "vocab.txt").write_text("\n".join(vocabulary), encoding="utf8")
    kinds = {
        "bert": transformers.BertTokenizerFast,
        "distilbert": transformers.DistilBertTokenizerFast,
        "mpnet": transformers.MPNetTokenizerFast,
    }
    return kinds[kind](str(folder / "vocab.txt"))


def _byte_level(folder):
    backend = ByteLevelBPETokenizer()
    backend.train_from_iterator(
        [" ".join(WORDS)] * 3,
        vocab_size=300,
        min_frequency=1,
        special_tokens=["<s>", "<pad>", "</s>", "<unk>", "<mask>"],
    )
    backend.save_model(str(folder))
    return transformers.RobertaTokenizerFast(str(folder / "vocab.json"), str(folder / "merges.txt"))


def _unigram():
    specials = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    characters = [*string.ascii_lowercase, *string.digits, *".,;-[]\u2581"]
    words = [f"\u2581{word}" for word in WORDS]
    pieces = [*((x, 0.0) for x in specials), *((x, -9.0) for x in characters)]
    backend = Tokenizer(models.Unigram([*pieces, *((x, -2.0) for x in words)], unk_id=3))
    backend.pre_tokenizer = pre_tokenizers.Metaspace()
    names = ("cls_token", "pad_token", "sep_token", "unk_token", "mask_token")
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=backend, **dict(zip(names, specials))
    )


def dual_encoder(
    name,
    window=24,
    pooling=None,
    separate=False,
    **settings,
):
    """An initialized dual encoder, in float32 by default.

    pooling: Of both towers; None for ``SpanMeanPooling``.
    separate: Whether entities have a tower of their own.
    settings: Other settings of ``TransformerEncoder.v1``.
    """
    settings = {"precision": "float32", **settings}
    towers = [
        build_transformer_encoder(name, window, pooling or SpanMeanPooling(), **settings)
        for _ in range(1 + separate)
    ]
    model = build_dual_encoder(*towers)
    model.initialize()
    return DualEncoder(model)
