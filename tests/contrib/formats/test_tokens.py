"""Formats with one token per line: AIDA-CoNLL, CoNLL-U and WebAnno TSV."""

import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_arbo_el.corpora.convert import convert_corpus
from spacy_arbo_el.corpora.read import known_format_of, read

AIDA = """-DOCSTART- (1 EU)
He
visited
Port\tB\tPort Veil\tPort_V\\u00e9il\thttp://en.wikipedia.org/wiki/Port_V%C3%A9il\t11867\t/m/0345h
Veil\tI\tPort Veil\tPort_V\\u00e9il\thttp://en.wikipedia.org/wiki/Port_V%C3%A9il\t11867\t/m/0345h
Tarn\tB-ORG\tTarn\t--NME--

.
-DOCSTART- (2 Next)

"Zelmar\tB\t"Zelmar\tZelmar\tx\t1\t/m/1
"""

HEADER = "# global.Entity = GRP-etype-infstat-identity\n"


def conllu(*rows):
    lines = []
    for row in rows:
        if isinstance(row, str):
            lines.append(row)
        else:
            lines.append("\t".join([row[0], row[1], *"_______", row[2]]))
    return "\n".join(lines) + "\n"


CONLLU = HEADER + conllu(
    "# newdoc id = d1",
    "# newpar",
    ("1", "He", "Entity=(1-person-new)"),
    ("2", "saw", "_"),
    ("3", "Port", "Entity=(2-place-new-Port_Veil%2C_X(3-object-old-_"),
    ("4", "Veil", "Entity=2)3)|SpaceAfter=No"),
    ("5", ".", "_"),
    "",
    "# newpar",
    ("1-2", "zum", "_"),
    ("1", "zu", "_"),
    ("2", "dem", "Entity=(4-place-new-Q-5"),
    ("2.1", "_", "Entity=(5-zero)"),
    ("3", "Tor", "Entity=4)"),
    ("4", "x", "Entity=(6[1/2]-place)"),
    "",
    "# newdoc id = d2",
    ("1", "So", "_"),
)

WEBANNO = r"""#FORMAT=WebAnno TSV 3.3
#T_SP=webanno.custom.Empty|
#T_CH=de.Coref|referenceType|referenceRelation
#T_SP=de.NamedEntity|identifier|value
#T_RL=de.Dependency|DependencyType|BT_de.POS


#Text=💩 He saw Port \
#Text=Veil.
1-1	0-2	💩	_	_	_	_	_	_	_
1-2	3-5	He	_	_	_	*	*	_	_
1-3	6-9	saw	_	_	_	_	_	_	_
1-4	10-14	Port	_	_	_	http://www.wikidata.org/wiki/Q1[1]|*[2]	PLACE[1]|a\|b[2]	_	_
1-4.1	10-12	Po	_	_	_	x\_y	SUB	_	_
1-5	17-21	Veil	_	_	_	http://www.wikidata.org/entity/Q1[1]	PLACE[1]	_	_
1-6	21-22	.	_	_	_	_	_	_	_

#Text=Tarn
2-1	24-28	Tarn	_	_	_	D1|D2	ORG|ORG	_	_
""".replace("Port \\\n", "Port \\\\\n")


def found(document):
    return [(document.text[one.start : one.end], one.label, one.kb_id) for one in document.mentions]


def test_aida(write):
    first, second = read(write(AIDA, "aida.tsv"), "")
    assert (first.id, first.text) == ("1 EU", "He visited Port Veil Tarn\n.")
    assert found(first) == [("Port Veil", "ENTITY", "Port_Véil"), ("Tarn", "ORG", "NIL")]
    assert (second.id, found(second)) == ("2 Next", [('"Zelmar', "ENTITY", "Zelmar")])


def test_conllu(write):
    path = write(CONLLU, "a.data")
    with pytest.warns(UserWarning, match="1 mentions in several pieces .*'d1'"):
        first, second = read(path, "")
    assert (first.id, first.text) == ("d1", "He saw Port Veil.\nzum Tor x")
    assert found(first) == [
        ("He", "person", "NIL"),
        ("Port Veil", "place", "Port_Veil,_X"),
        ("Port Veil", "object", "NIL"),
        ("zum Tor", "place", "Q-5"),
    ]
    assert (second.id, second.text, second.mentions) == ("d2", "So", ())


def test_webanno(write, tmp_path):
    (document,) = read(write(WEBANNO, "a.tsv"), "")
    assert (document.id, document.text) == ("a", "💩 He saw Port \\\nVeil.\n\nTarn")
    assert found(document) == [
        ("He", "ENTITY", "NIL"),
        ("Port \\\nVeil", "PLACE", "Q1"),
        ("Port", "a|b", "NIL"),
        ("Po", "SUB", "x_y"),
        ("Tarn", "ORG", "D1"),
        ("Tarn", "ORG", "D2"),
    ]
    folder = tmp_path / "export" / "d"
    folder.mkdir(parents=True)
    (folder / "INITIAL.tsv").write_text(WEBANNO, "utf8")
    (same,) = read(tmp_path / "export", "")
    assert (same.id, same.mentions) == ("d/INITIAL", document.mentions)


WRONG = {
    "aida": (AIDA, [
        ("visited", "visited NNP I-NP O", "line 3: 'visited NNP"),
        ("Veil\tI\tPort Veil", "Veil\tB\tPort Veil", "line 4: the mention is 'Port Veil', but"),
        ("Port\tB", "Port\tI", "line 4: I without a B"),
        ("Tarn\tB-ORG\tTarn\t--NME--", "Tarn\tB-ORG\tTarn", "line 6: 'Tarn"),
    ]),
    "conllu": (CONLLU, [
        ("global.Entity", "globals", "line 4: an entity, but no comment"),
        ("2)3)", "3)", "line 16: the entity '2' is opened, but not closed"),
        ("2)3)", "2)3)7)", "line 7: the entity '7' is closed, but not opened"),
        ("2\tsaw\t", "2 saw\t", "line 5: .* no line of CoNLL-U"),
    ]),
    "webanno": (WEBANNO, [
        ("6-9\tsaw", "6-9\tsee", "line 12: in the sentence, the mention is 'see'"),
        ("1-3\t6-9", "1-3\tsix", "line 12: .* no line of WebAnno"),
        ("x\\_y", "x[y", "line 14: 'x.y' has a bracket"),
        ("ORG|ORG", "ORG", "line 19: identifier and value"),
        ("identifier|value", "id|value", "line 1: no layer has an 'identifier'"),
    ]),
}  # fmt: skip


@pytest.mark.parametrize("format", WRONG)
def test_wrong_lines_are_errors_with_their_number_and_leave_out_their_document(write, format):
    content, cases = WRONG[format]
    for right, wrong, problem in cases:
        assert right in content
        path, problems = write(content.replace(right, wrong, 1), "a.data"), []
        with pytest.raises(ValueError, match=problem):
            list(read(path, format))
        left = list(read(path, format, problems.append))
        assert (len(problems), len(left)) == (1, 0 if format == "webanno" else 1)


@pytest.mark.parametrize(
    ("name", "content", "format"),
    [
        ("a.txt", "-DOCSTART- (1 EU)\n", "aida"),
        ("a.conllu", "1\tx\n", "conllu"),
        ("a.txt", "# sent_id = 1\n# text = x\n", "conllu"),
        ("a.txt", HEADER, "conllu"),
        ("a.tsv", WEBANNO, "webanno"),
        ("a.csv", "# text,x\n", "csv"),
    ],
)
def test_formats_are_known_by_name_and_content(write, name, content, format):
    assert known_format_of(write(content, name)) == format


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


def mentioned(drawn):
    return [
        (" ".join(tokens[start:end]), id_) for tokens, spans in drawn for start, end, id_ in spans
    ]


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
    ("format", "writer", "between"),
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
    assert [(words, id_) for words, _, id_ in found(document)] == mentioned(drawn)


def test_a_corpus_of_tokens_is_converted(write, nlp, tmp_path):
    out = tmp_path / "o.spacy"
    counts = convert_corpus(write(AIDA, "a.txt"), out, format="", nlp=nlp)
    assert (counts["docs"], counts["mentions"], counts["nil"]) == (2, 3, 1)
