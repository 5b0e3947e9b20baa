"""Values that are derived from a store: built once for each revision."""

from spacy_arbo_el.storage.locks import Revision, RevisionCache


def test_a_value_is_built_anew_where_any_part_of_its_revision_changes():
    """Each name has its own value, and None is a value too."""
    cache, built = RevisionCache(), []
    revisions = [(1, 1, "a"), (2, 1, "a"), (2, 2, "a"), (2, 2, "b"), (1, 1, "a")]
    for number, parts in enumerate(revisions):
        revision, value = Revision(*parts), None if number == 3 else number
        for _ in range(2):
            found = cache.get("index", revision, lambda v=value: built.append(v) or v)
            assert found == value
    assert built == [0, 1, 2, None, 4]
    assert cache.get(("strings", 1, 3), 1, lambda: "two") == "two"
    assert cache.get("index", Revision(1, 1, "a"), lambda: "three") == 4
