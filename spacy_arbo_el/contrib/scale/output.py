"""The links of a shard, as one row per mention or as whole documents."""

import io
import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from spacy.tokens import Doc, DocBin

from ...base.extras import import_pyarrow
from ...mentions.getters import SpanGetter
from ...show.frames import LINK_WITH_EVIDENCE, LinkColumns, rows_of


def schema() -> Any:
    """The schema of the rows, for pyarrow."""
    pa = import_pyarrow()
    types = {"start": pa.int64(), "end": pa.int64(), "score": pa.float64()}
    types["presence"] = pa.float64()
    types["evidence"] = pa.list_(pa.string())
    return pa.schema([(column, types.get(column, pa.string())) for column in LINK_WITH_EVIDENCE])


def to_parquet(docs: Sequence[Doc], get_spans: SpanGetter, extension: str) -> bytes:
    rows = list(rows_of(docs, get_spans, extension))
    pyarrow = import_pyarrow()
    buffer = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows, schema=schema()), buffer)
    return buffer.getvalue()


def to_jsonl(docs: Sequence[Doc], get_spans: SpanGetter, extension: str) -> bytes:
    return json_lines(rows_of(docs, get_spans, extension))


def to_docbin(docs: Sequence[Doc], get_spans: SpanGetter, extension: str) -> bytes:
    return DocBin(docs=docs, store_user_data=True).to_bytes()


# From linked documents to the bytes of a file, by format.
FORMATS: dict[str, Callable[[Sequence[Doc], SpanGetter, str], bytes]] = {
    "parquet": to_parquet,
    "jsonl": to_jsonl,
    "spacy": to_docbin,
}


def json_lines(rows: Iterable[LinkColumns]) -> bytes:
    """Rows as JSON, one per line."""
    lines: list[str] = [json.dumps(row, ensure_ascii=False) + "\n" for row in rows]
    return "".join(lines).encode("utf8")
