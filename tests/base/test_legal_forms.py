"""Names of companies without their legal form."""

import pytest

from spacy_arbo_el.base.words import without_legal_form


@pytest.mark.parametrize(
    ("name", "bare"),
    [
        ("Alder Instruments Ltd.", "Alder Instruments"),
        ("Alder, Inc.", "Alder"),
        ("Velmo S.p.A.", "Velmo"),
        ("Velmo S. A.", "Velmo"),
        ("Velmo GmbH & Co. KG", "Velmo"),
        ("Velmo Co., Ltd", "Velmo"),
        ("Velmo sp. z o.o.", "Velmo"),
        ("Ltd.", ""),
        ("Velmo", ""),
        ("The Company Store", ""),
        ("", ""),
    ],
)
def test_legal_forms_at_the_end_are_left_out(name, bare):
    assert without_legal_form(name) == bare
