"""Formats with one token per line: AIDA-CoNLL, CoNLL-U and WebAnno TSV."""

import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_arbo_el.corpora.read import read

HEADER = "# global.Entity = GRP-etype-infstat-identity\n"


def found(document):
    return [(document.text[one.start : one.end], one.label, one.kb_id) for one in document.mentions]


@st.composite
def sentences(draw):
    """Sentences of tokens, each with the spans of tokens and ids of its mentions."""
    words = st.text(
        st.characters(exclude_categories=("Cs", "Cc", "Zs", "Zl", "Zp")), min_size=1, max_size=4
    )
    found = []
    for tokens in draw(st.lists(st.lists(words, min_size=1, max_size=6), min_size=1, max_size=3)):
        borders = sorted(draw(st.sets(st.integers(0, len(tokens)), max_size=4)))
        pairs = list(zip(borders[::2], borders[1::2]))
        found.append((tokens, [(*pair, draw(st.sampled_from(["D1", "NIL"]))) for pair in pairs]))
    return found


def as_aida(drawn):
    rows = ["-DOCSTART- (d)"]
    for tokens, spans in drawn:
        for at, token in enumerate(tokens):
            inside = [one for one in spans if one[0] <= at < one[1]]
            for start, end, id_ in inside:
                title = "--NME--" if id_ == "NIL" else id_
                words = " ".join(tokens[start:end])
                token = "\t".join([token, "BI"[at > start], words, title])
            rows.append(token)
        rows.append("")
    return "\n".join(rows)


def as_conllu(drawn):
    rows, number = ["# newdoc id = d", HEADER.replace("infstat-", "").strip()], 0
    for tokens, spans in drawn:
        for at, token in enumerate(tokens):
            marks = ""
            for i, (start, end, id_) in enumerate(spans, number):
                marks += f"(e{i}-X-{id_}" if at == start else ""
                marks += (")" if at == start else f"e{i})") if at == end - 1 else ""
            rows.append("\t".join([str(at + 1), token, *"_______", f"Entity={marks}"]))
        number += len(spans)
        rows.append("")
    return "\n".join(rows)


def as_webanno(drawn):
    rows = ["#FORMAT=WebAnno TSV 3.3", "#T_SP=x.NamedEntity|identifier|value", ""]
    offset, number = 0, 1
    for tokens, spans in drawn:
        rows.append("#Text=" + " ".join(tokens).replace("\\", "\\\\"))
        for at, token in enumerate(tokens):
            end = offset + len(token.encode("utf-16-le")) // 2
            cells = "_\t_"
            for i, (first, last, id_) in enumerate(spans):
                if first <= at < last:
                    id_ = "*" if id_ == "NIL" else id_
                    cells = f"{id_}[{number + i}]\tX[{number + i}]"
            form = token.replace("\\", "\\\\")
            rows.append(f"1-{at + 1}\t{offset}-{end}\t{form}\t{cells}\t")
            offset = end + 1
        number += len(spans)
        rows.append("")
    return "\n".join(rows)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("tokens")


@pytest.mark.parametrize(
    "format, writer, between",
    [("aida", as_aida, "\n"), ("conllu", as_conllu, " "), ("webanno", as_webanno, "\n")],
)
@given(drawn=sentences())
def test_any_tokens_come_back_with_their_mentions(folder, format, writer, between, drawn):
    path = folder / "d.data"
    path.write_bytes(writer(drawn).encode("utf8"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (document,) = read(path, format)
    assert document.text == between.join(" ".join(tokens) for tokens, _ in drawn)
    assert document.id == "d"
    assert [(words, id_) for words, _, id_ in found(document)] == [
        (" ".join(tokens[start:end]), id_) for tokens, spans in drawn for start, end, id_ in spans
    ]
