"""Titles of Wikipedia articles, from addresses and from files."""

from urllib.parse import unquote_to_bytes

PAGES = "/wiki/"


def article_title(title: str) -> str:
    """A title as Wikipedia shows it: with spaces, which addresses write as underscores.

    A percent sign is part of a title ("100% Wolf"): only addresses encode characters with it.
    """
    return " ".join(title.replace("_", " ").split())


def title_of_address(address: str) -> str:
    """The title in the address of an article; "" where it has none.

    It is decoded once: "100%25_Wolf" is "100% Wolf". A title may have slashes ("AC/DC").

    ValueError where its bytes are no UTF-8.
    """
    _, page, title = address.partition(PAGES)
    title = title.partition("#")[0].partition("?")[0]
    return article_title(unquote_to_bytes(title).decode("utf8")) if page else ""
