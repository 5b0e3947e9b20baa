"""Display of objects as short texts."""

# Characters of a text that a table or a line shows.
SHOWN_CHARACTERS = 80


def one_line(text: str) -> str:
    return " ".join(text.split())


def shortened(text: str, length: int = SHOWN_CHARACTERS) -> str:
    """Shorten a text to one line of at most ``length``."""
    line = one_line(text)
    if len(line) <= length:
        return line
    return line[: length - 1].rstrip() + "…"


def shown_probability(probability: float) -> str:
    """Format a probability in two digits. More are used where it would look like 0 or 1."""
    is_plain = 0.005 <= probability < 0.995 or probability in (0.0, 1.0)
    if is_plain:
        return f"{probability:.2f}"
    return f"{probability:.4f}"


def counted(count: int, singular: str, plural: str = "") -> str:
    """A number with its noun: "1 entity", "6,574 entities"."""
    return f"{count:,} {singular if count == 1 else plural or singular + 's'}"
