"""What loading a pipeline does for a review: the decisions that came after it was saved."""

from pathlib import Path

from spacy.language import Language

from ....pipelines import journal_path


def make_pending(nlp: Language, model: Path) -> None:
    """Make the decisions that a loaded pipeline lacks.

    nlp: The pipeline.
    model: Its folder.
    """
    if journal_path(model).is_file():
        from .deciding import replay

        replay(nlp, model)
