"""A fit for a linker that also stores the mentions as exemplars."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from copy import deepcopy
from dataclasses import replace

from spacy.tokens import Doc

from ..linker import ArboLinker
from ..mentions.record import MentionKey, keys_of
from ..ranking.ranking import FitsBesideExemplars
from ..retrieval.exemplars import ExemplarStore
from .calibrate import HeldOutFit, annotated_mentions, divided


def fit_beside_exemplars(
    linker: ArboLinker, docs: Sequence[Doc], fit: HeldOutFit
) -> HeldOutFit:
    """The same fit, but with rerankers that have learned to rank beside exemplars.

    Each part is searched with the mentions of the other parts as exemplars, as new documents will
    be with all of them. To learn without exemplars costs some 3 points of R@1 with 592 documents of
    NCBI; with 35 and 120 of them it makes no difference. The linker is unchanged.

    docs: Those of the fit, in the same order.
    RETURNS: The fit itself where the reranker can't learn so.
    """
    reranker = linker.reranker
    if not fit.without or not isinstance(reranker, FitsBesideExemplars):
        return fit
    labelled = []
    for training_docs, held_out in divided(docs, len(fit.without)):
        with restored(linker, docs):
            linker.feedback.add_exemplars(training_docs, linker.stages.cache)
            linker.refresh()
            mentions = annotated_mentions(linker.stages, held_out)
            context = linker.stages.context
            labelled.append(
                None if mentions is None else reranker.labelled(mentions, context)
            )
    for_all, *without = reranker.fit_folds(labelled, linker.stages.context)
    fits = [
        fold_fit._replace(reranker=reranker)
        for fold_fit, reranker in zip(fit.without, without)
    ]
    return HeldOutFit(fit.whole._replace(reranker=for_all), fits)


@contextmanager
def keeping(linker: ArboLinker) -> Iterator[None]:
    """Encode each mention once within the block."""
    linker.refresh()
    stages = linker.stages
    linker.stages = linker.caching_stages()
    try:
        yield
    finally:
        linker.stages = stages


def restored(linker: ArboLinker, docs: Sequence[Doc]) -> AbstractContextManager[None]:
    """A linker to change in the block, without exemplars of these documents."""
    return without_exemplars(
        linker,
        (key for doc in docs for key in keys_of(linker.reader.all_mentions(doc))),
    )


@contextmanager
def without_exemplars(
    linker: ArboLinker, keys: Iterable[MentionKey]
) -> Iterator[None]:
    """A linker to change in the block, without the exemplars of these keys."""
    stages = linker.stages
    store = linker.exemplars
    cfg = dict(linker.cfg)
    datastore = linker.datastore
    remaining = ExemplarStore().from_bytes(store.to_bytes())
    remaining.remove(keys)
    with datastore.editing():
        datastore.exemplars = remaining
    linker.stages = replace(stages, corrections=deepcopy(stages.corrections))
    try:
        yield
    finally:
        with datastore.editing():
            datastore.exemplars = store
        linker.stages = stages
        linker.cfg.update(cfg)
