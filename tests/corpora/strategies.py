"""Annotated texts with mentions at arbitrary offsets."""

from hypothesis import strategies as st

from spacy_arbo_el.corpora.annotated import AnnotatedMention, AnnotatedText

# Letters, characters at which tokenizers split, all kinds of whitespace, and characters of several
# bytes, code points or glyphs.
CHARACTERS = "abZ09 \t\n\r\u00a0\u2003\u2028\x0b\x85.,-/()'’&éßİ中🙂\u200d\u0301\U0001f1e9"
PIECES = st.sampled_from(
    [" ", "  ", "\n\n", "can't", "non-small-cell", "G6PD", "e.g.", "http://a.b/c?d", "👩‍🔬", "é"]
)
TEXTS = st.one_of(
    st.text(CHARACTERS, max_size=30),
    st.text(st.characters(exclude_categories=("Cs",)), max_size=20),
    st.lists(PIECES, max_size=10).map("".join),
)
IDS = st.text("DCQ0123456789:.", min_size=1, max_size=8)


@st.composite
def annotated_texts(draw, texts=TEXTS):
    text = draw(texts)
    if not text:
        return AnnotatedText(draw(IDS), text)
    offsets = st.tuples(st.integers(0, len(text)), st.integers(0, len(text)))
    pairs = draw(st.lists(offsets.filter(lambda pair: pair[0] != pair[1]), max_size=6))
    return AnnotatedText(
        draw(IDS), text, tuple(draw(annotated_mentions(*sorted(pair))) for pair in pairs)
    )


@st.composite
def annotated_mentions(draw, start, end):
    return AnnotatedMention(
        start=start,
        end=end,
        label=draw(st.sampled_from(["Disease", "Chemical", "ÄÖ", "a b"])),
        kb_ids=tuple(draw(st.lists(IDS, max_size=3, unique=True))),
        cluster=draw(st.sampled_from(["", "new-1", "new-2"])),
    )
