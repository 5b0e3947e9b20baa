"""Character n-grams of many strings against those of scikit-learn, string by string."""

from collections import Counter

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st
from sklearn.feature_extraction.text import CountVectorizer

from spacy_arbo_el.ranking.string_features import count_ngrams

texts = st.text(alphabet=st.sampled_from("abc é\n\t\u3000\U00020000🙂ab "), max_size=12)


def counted(strings, shortest, longest):
    """For each string the counts of its n-grams, by key."""
    found = count_ngrams(strings, shortest, longest)
    assert (np.diff(found.keys.astype(object)) > 0).all()
    spans = zip(found.bounds[:-1].tolist(), found.bounds[1:].tolist())
    return [
        dict(zip(found.keys[found.ngrams[a:b]].tolist(), found.counts[a:b].tolist()))
        for a, b in spans
    ]


@given(st.lists(texts, max_size=5), st.integers(1, 6), st.integers(0, 3))
@example(["a", "", "  "], 6, 0)
def test_ngrams_are_those_of_scikit_learn(strings, shortest, more):
    lengths = shortest, shortest + more
    analyze = CountVectorizer(
        analyzer="char_wb", ngram_range=lengths, lowercase=False
    ).build_analyzer()
    expected = [Counter(analyze(string)) for string in strings]
    key_of = {}
    for ngrams, keys in zip(expected, counted(strings, *lengths)):
        assert sorted(ngrams.values()) == sorted(keys.values())
        # Alone, an n-gram has the same key as anywhere.
        for ngram in ngrams:
            if ngram not in key_of:
                (only,) = (
                    counted([ngram.strip()], len(ngram), len(ngram)) if is_word(ngram) else [{}]
                )
                key_of[ngram] = next(iter(only), None)
            if key_of[ngram] is not None:
                assert keys[key_of[ngram]] == ngrams[ngram]
    distinct = {ngram for ngrams in expected for ngram in ngrams}
    assert len(count_ngrams(strings, *lengths).keys) == len(distinct)


def is_word(ngram):
    """Whether an n-gram is a whole word with its two spaces."""
    return len(ngram) > 2 and ngram[0] == ngram[-1] == " "


def test_a_key_belongs_to_the_ngram_not_to_the_strings_beside_it():
    one, two = counted(["abc", "abc d"], 1, 3), counted(["xyz", "d abc"], 1, 3)
    assert set(one[0]) <= set(two[1]) and one[1] == two[1]
