"""A hook of mkdocs: the site has the pages in the places that they have in the repository.

So the links between README.md, docs/ and the other folders are the same in both.
"""

from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
PAGES = ("*.md", "docs/*.md", "docs/*.svg", "docs/*.png", "docs/*.json", "LICENSE")
# What pages link to.
LINKED = ("*/README.md", "examples/*.py")


def on_files(files: Files, config: Any) -> Files:
    """The files of the repository, instead of those of docs/ alone."""
    urls = config["use_directory_urls"]
    theme = [file for file in files if Path(file.src_dir or "") != ROOT / "docs"]
    paths = sorted(
        path for pattern in (*PAGES, *LINKED) for path in ROOT.glob(pattern)
    )
    names = [path.relative_to(ROOT).as_posix() for path in paths]
    return Files(
        theme + [File(name, str(ROOT), config["site_dir"], urls) for name in names]
    )
