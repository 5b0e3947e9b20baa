"""Passages on a grid, against their definition."""

from hypothesis import given
from hypothesis import strategies as st

from spacy_arbo_el.mentions.passages import NEAR, STEP, WIDTH, passages_around


@given(st.text(alphabet="ab \n", max_size=1500), st.data())
def test_a_passage_has_all_of_its_mention_and_text_on_both_sides(text, data):
    places = st.integers(0, len(text))
    start, end = sorted((data.draw(places), data.draw(places)))
    (passage,) = passages_around(text, [(start, end)])
    if len(text) <= WIDTH:
        assert passage == text
        return
    middle = (start + end) // 2
    least = WIDTH // 2 - STEP // 2 - NEAR - 1
    around = text[max(middle - least, 0) : middle + least]
    assert text[start:end] in passage
    assert around in passage
    assert len(passage) <= max(WIDTH, end - start) + WIDTH


def test_mentions_near_each_other_have_one_passage():
    text = "".join(f"{number:04} " for number in range(400))
    offsets = [(place, place + 4) for place in range(0, 2000, 5)]
    passages = passages_around(text, offsets)
    assert len(set(passages)) == len(text) // STEP - 1
    assert all(passage.endswith(" ") and passage[:1].isdigit() for passage in passages)


def test_a_text_without_white_space_is_cut_all_the_same():
    (passage,) = passages_around("\u5b57" * 1000, [(500, 502)])
    assert len(passage) == WIDTH
