"""What ``arbo fit`` says of its documents."""

from ..commands import run


def test_ids_that_the_list_lacks_are_named(saved_nlp, tmp_path):
    rows = ["An apple a day.,apple,fruit", "A river runs.,river,river", "A fever.,fever,MESH:D7"]
    (tmp_path / "docs.csv").write_text("\n".join(["text,mention,kb_id", *rows]))
    run("convert", tmp_path / "docs.csv", tmp_path / "docs.spacy")
    arguments = ("fit", saved_nlp, tmp_path / "docs.spacy", "--strategy", "exemplars")
    output = run(*arguments, "--output", tmp_path / "fitted")
    assert "The list lacks 1 of 3 gold ids (1 mention): MESH:D7" in output
