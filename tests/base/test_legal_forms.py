"""Names of companies without their legal form."""

import pytest

from spacy_arbo_el.base.words import without_legal_form

from ..cases import cases


@pytest.mark.parametrize(("name", "bare"), cases("legal_forms"))
def test_legal_forms_at_the_end_are_left_out(name, bare):
    assert without_legal_form(name) == bare
