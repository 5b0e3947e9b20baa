from collections import Counter

import pytest

from spacy_arbo_el.contrib.formats.pubtator import PubTatorReader
from spacy_arbo_el.corpora.annotated import AnnotatedText

GOOD = "1|t|Skin tumour.\n1|a|A colon cancer.\n1\t0\t11\tSkin tumour\tDisease\tD012878\n"


def test_peculiarities_of_the_real_corpora(write):
    lines = [
        "",  # NCBI train begins with an empty line
        "1|t|Ocular and auditory toxicity",
        "1|a|",
        "1\t0\t28\tOcular and auditory toxicity\tDisease\tD014786|D006311\tOcular toxicity|…",
        "1\t0\t6\tOcular\tModifier\t D004829+OMIM:1 ",
        "1\t7\t10\tand\tDisease\t-1",
        "1\t11\t19\tauditory  \tDisease\tD1|-1",
        "1\t20\t28\ttoxicity\tDisease",
        "1\tCID\tD008750\tD007022",
        "2|t|No empty line before, a | pipe in it",
        "2|a|And|a|half.",
    ]
    first, second = PubTatorReader().read(write("\r\n".join(lines)))
    assert first.text == "Ocular and auditory toxicity "
    assert [mention.kb_ids for mention in first.mentions] == [
        ("D014786", "D006311"),
        ("D004829", "OMIM:1"),
        (),
        ("D1",),
        (),
    ]
    assert [first.text[m.start : m.end] for m in first.mentions][3] == "auditory"
    assert second == AnnotatedText("2", "No empty line before, a | pipe in it And|a|half.")


def test_duplicate_document_is_left_out_with_a_warning(write):
    path, counts = write(f"{GOOD}\n{GOOD}\n2|t|T\n2|a|A\n"), Counter()
    with pytest.warns(UserWarning, match=r"input\.txt, line 5: document '1' came before"):
        texts = list(PubTatorReader().read(path, counts=counts))
    assert [text.id for text in texts] == ["1", "2"]
    assert counts == {"duplicates": 1}


HEAD = "1|t|Skin tumour.\n1|a|A colon cancer.\n"


@pytest.mark.parametrize(
    ("content", "line", "problem"),
    [
        ("hello\n", 1, "a line outside any document, 'hello'"),
        ("1|a|no title\n", 1, "a line outside any document"),
        (GOOD + "\n2\t0\t4\tSkin\tX\tD1\n", 5, "a line outside any document"),
        ("1|t|Title\n2|a|Abstract\n", 2, "a line of document '2' inside document '1'"),
        (HEAD + "1|a|Again\n", 3, "a second abstract for document 1"),
        (HEAD + "2\t0\t4\tSkin\tX\tD1\n", 3, "a line of document '2' inside document '1'"),
        (HEAD + "and more text\n", 3, "a line of document 'and more text' inside"),
        (HEAD + "1\t0\t4\tSkin\n", 3, "4 columns are too few"),
        (HEAD + "1\n", 3, "1 columns are too few"),
        (HEAD + "1\tx\t4\tSkin\tX\tD1\n", 3, "'x' is no offset"),
        (HEAD + "1\t0\t4.0\tSkin\tX\tD1\n", 3, "'4.0' is no offset"),
        (HEAD + "1\t-1\t4\tSkin\tX\tD1\n", 3, "'-1' is no offset"),
        (HEAD + "1\t0\t" + "9" * 5000 + "\tSkin\tX\tD1\n", 3, "is no offset"),
        (HEAD + "1\t4\t4\t\tX\tD1\n", 3, "a mention from 4 to 4 doesn't fit a text of 28"),
        (HEAD + "1\t24\t29\tcer.\tX\tD1\n", 3, "a mention from 24 to 29 doesn't fit a text of 28"),
        (
            HEAD + "1\t0\t4\tskin\tX\tD1\n",
            3,
            "the mention is 'skin', but the text from 0 to 4 is 'Skin'",
        ),
        (HEAD + "1\t0\t4\tSkin\t \tD1\n", 3, "the label (column 5) is empty"),
    ],
)
def test_invalid_line_is_an_error_with_file_line_and_problem(write, content, line, problem):
    path = write(content)
    with pytest.raises(ValueError) as caught:
        list(PubTatorReader().read(path))
    assert f"{path}, line {line}: " in str(caught.value)
    assert problem in str(caught.value)


def test_documents_before_an_invalid_line_are_read(write):
    texts = PubTatorReader().read(write(GOOD + "\ninvalid"))
    assert next(texts).id == "1"
    with pytest.raises(ValueError, match="line 5"):
        next(texts)


def test_files_of_today(write):
    """No abstract, relations of five columns, ids joined by semicolons and commas."""
    text = (
        "1|t|BRCA1 and BRCA2\n"
        "1\t0\t5\tBRCA1\tGene\t672;675\n"
        "1\t10\t15\tBRCA2\tGene\t675,672\n"
        "1\tPositive_Correlation\t672\t675\tNovel\n"
        "2|t|Skin\n2|a|\n2\t0\t4\tSkin\tX\tD1\n"
    )
    first, second = PubTatorReader().read(write(text))
    assert first.text == "BRCA1 and BRCA2"
    assert [mention.kb_ids for mention in first.mentions] == [("672", "675"), ("675", "672")]
    assert (second.text, len(second.mentions)) == ("Skin ", 1)


def test_empty_lines_within_a_document(write):
    path = write("1|t|Skin tumour.\n\n1|a|A colon cancer.\n\n1\t0\t4\tSkin\tX\tD1\n")
    (text,) = PubTatorReader().read(path)
    assert text.text == "Skin tumour. A colon cancer." and len(text.mentions) == 1


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        (
            "tmVar:c|SUB|G|12|A;HGVS:c.12G>A;VariantGroup:0",
            ("tmVar:c_SUB_G_12_A", "HGVS:c.12G>A", "VariantGroup:0"),
        ),
        ("c|SUB|G|12|A", ("c_SUB_G_12_A",)),
        ("p|SUB|V|600|E;RS#:113488022", ("p_SUB_V_600_E", "RS#:113488022")),
        ("D1|D2", ("D1", "D2")),
    ],
)
def test_bars_within_a_variant_separate_no_ids(write, ids, expected):
    path = write(f"1|t|A c.12G>A rose.\n1\t2\t9\tc.12G>A\tDNAMutation\t{ids}\n")
    ((mention,),) = (text.mentions for text in PubTatorReader().read(path))
    assert mention.kb_ids == expected
