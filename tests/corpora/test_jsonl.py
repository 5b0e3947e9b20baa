import json
from dataclasses import asdict

from hypothesis import given
from hypothesis import strategies as st

from spacy_arbo_el.corpora.json_documents import JsonlReader

from .strategies import annotated_texts


@given(st.lists(annotated_texts(), max_size=4, unique_by=lambda text: text.id))
def test_every_annotated_text_is_read_as_it_was(tmp_path, texts):
    path = tmp_path / "texts.jsonl"
    lines = []
    for text in texts:
        mentions = [{**asdict(mention), "kb_id": mention.kb_id} for mention in text.mentions]
        lines.append(json.dumps({"id": text.id, "text": text.text, "mentions": mentions}))
    path.write_text("\n".join(lines), encoding="utf8")
    assert list(JsonlReader().read(path)) == texts
