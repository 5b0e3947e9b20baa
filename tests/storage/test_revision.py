"""Values that are derived from a store: built once for each revision."""

from spacy_arbo_el.storage.locks import Revision, RevisionCache


def test_a_value_is_built_once_while_the_revision_stays():
    cache, built = RevisionCache(), []

    def build():
        built.append(len(built))
        return built[-1]

    first = cache.get("index", Revision(1, 2, "encoder"), build)
    assert cache.get("index", Revision(1, 2, "encoder"), build) == first == 0
    assert built == [0]


def test_any_part_of_a_revision_that_changes_builds_the_value_again():
    cache, built = RevisionCache(), []
    revisions = [
        Revision(1, 1, "a"),
        Revision(2, 1, "a"),
        Revision(2, 2, "a"),
        Revision(2, 2, "b"),
        Revision(1, 1, "a"),
    ]
    for number, revision in enumerate(revisions):
        assert cache.get("index", revision, lambda n=number: built.append(n) or n) == number
    assert built == [0, 1, 2, 3, 4]


def test_values_have_names_of_their_own():
    cache = RevisionCache()
    assert cache.get("index", 1, lambda: "one") == "one"
    assert cache.get(("strings", 1, 3), 1, lambda: "two") == "two"
    assert cache.get("index", 1, lambda: "three") == "one"


def test_none_is_a_value_too():
    cache, built = RevisionCache(), []
    for _ in range(2):
        assert cache.get("nothing", 1, lambda: built.append(1)) is None
    assert built == [1]
