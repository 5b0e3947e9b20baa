"""Distillation: an n-gram student learns a pipeline's vectors. It needs no labels."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from spacy.tokens import Span
from thinc.api import Adam, Model, fix_random_seed, warmup_linear

from ...base.arrays import has_vector, unit
from ...base.errors import ArboError
from ...base.settings import check_choice, check_count, check_part, check_positive
from ...encoders.dual import DualEncoder
from ...encoders.inputs import SpanInputs
from ...linker import ArboLinker
from ...mentions.reader import ReadTexts
from ...retrieval.similarity import Cosine
from .errors import PaperMessages
from .ngrams.starting import settings_of

TARGETS = ("vectors", "similarities")
# Documents whose mentions are encoded at a time.
DOCUMENTS = 64


@dataclass(frozen=True)
class DistillationSettings:
    """Settings of a student's training.

    target: "vectors" for the teacher's vectors, of the same width, by the squared error between
        vectors of length 1; "similarities" for its similarities within a batch.
    steps: The number of steps.
    batch: The mentions of a step; as many names are added.
    rate: The highest learning rate.
    mentions: The most mentions that are read of the texts.
    held_out: The share of mentions and names that are not trained on.
    seed: Seed of the random draws.
    """

    target: str = "vectors"
    steps: int = 2000
    batch: int = 128
    rate: float = 0.002
    mentions: int = 20000
    held_out: float = 0.05
    seed: int = 0

    def __post_init__(self) -> None:
        check_choice("target", self.target, TARGETS)
        for name in ("steps", "batch", "mentions"):
            check_count(name, getattr(self, name), least=1)
        check_count("seed", self.seed)
        check_positive("rate", self.rate)
        check_part("held_out", self.held_out)


class Lessons(NamedTuple):
    """The student's inputs, and the teacher's vectors. They are of mentions or of names.

    inputs: n spans, as the student reads them.
    vectors: (n, teacher's width) float32, of length 1.
    """

    inputs: SpanInputs
    vectors: np.ndarray

    def take(self, rows: np.ndarray) -> "Lessons":
        return Lessons(self.inputs.take(rows), self.vectors[rows])


class DistillationReport(NamedTuple):
    """A report on the lessons and the student's distance.

    mentions, names: How many.
    before, after: The mean cosine between the student's and the teacher's vectors of held-out
        mentions and names; of "similarities", the correlation with the teacher's.
    """

    mentions: int
    names: int
    before: float
    after: float


def distill(
    teacher: ArboLinker,
    student: Model,
    spans: Iterable[list[Span]],
    settings: DistillationSettings,
    progress: Callable[[int, float], None] = lambda step, loss: None,
) -> DistillationReport:
    """Train a student's towers to give a teacher's vectors.

    The texts are the names of the teacher's knowledge base, as the teacher verbalizes them, and
    spans of documents, see ``corpora.names.spans_to_read``.

    teacher: The linker of a trained pipeline.
    student: What ``build_ngram_encoder`` gives, with weights.
    spans: The spans of each document.
    progress: Is given the number of each step and its loss.

    Raises ValueError where the widths differ and the target is "vectors", where there is nothing
    to learn from, or where the student has no n-grams.
    """
    encoder = DualEncoder(student)
    width = student.get_ref("mention").get_dim("nO")
    names = name_lessons(teacher, encoder)
    taught = names.vectors.shape[1]
    if settings.target == "vectors" and taught not in (0, width):
        raise ArboError(PaperMessages.E855.format(student=width, teacher=taught))
    mentions = mention_lessons(teacher, encoder, spans, settings)
    if len(names.inputs) < 2 or len(mentions.inputs) < 2:
        problem = "mentions in its texts" if len(names.inputs) > 1 else "names of entities"
        raise ArboError(PaperMessages.E856.format(problem=problem))
    fix_random_seed(settings.seed)
    rng = np.random.default_rng(settings.seed)
    parts = [_split(lessons, settings.held_out, rng) for lessons in (mentions, names)]
    kept = [part[0] for part in parts]
    held_out = [part[1] for part in parts]
    before = agreement(student, held_out, settings.target)
    for step, loss in enumerate(_steps(student, kept, settings, rng), 1):
        progress(step, loss)
    after = agreement(student, held_out, settings.target)
    return DistillationReport(len(mentions.inputs), len(names.inputs), before, after)


def check_student(model: Any) -> None:
    """Raise ValueError where a model is no encoder of n-grams."""
    try:
        settings_of(model)
    except (KeyError, AttributeError, IndexError):
        raise ArboError(PaperMessages.E857.format(name=getattr(model, "name", model))) from None


def name_lessons(teacher: ArboLinker, student: DualEncoder) -> Lessons:
    """The distinct texts of the teacher's entities, and their vectors."""
    teacher.refresh()
    texts = teacher.kb.vectors.distinct_texts(teacher.datastore.settings.verbalization)
    vectors = teacher.kb.rows.take(texts.rows) if len(texts) else np.zeros((0, 0), np.float32)
    return _readable(Lessons(student.read_texts(texts.texts), unit(vectors)))


def mention_lessons(
    teacher: ArboLinker,
    student: DualEncoder,
    spans: Iterable[list[Span]],
    settings: DistillationSettings,
) -> Lessons:
    """Spans of documents with the teacher's vectors."""
    lessons = []
    count = 0
    rest = filter(None, spans)
    while count < settings.mentions:
        groups = list(islice(rest, DOCUMENTS))
        if not groups:
            break
        lessons.append(_mention_lessons(teacher, student, teacher.reader.texts_of(groups)))
        count += len(lessons[-1].inputs)
    if not lessons:
        return Lessons(SpanInputs.empty(), np.zeros((0, 0), np.float32))
    inputs = SpanInputs.concat(part.inputs for part in lessons)
    together = Lessons(inputs, np.concatenate([part.vectors for part in lessons]))
    return together.take(np.arange(min(count, settings.mentions)))


def _mention_lessons(teacher: ArboLinker, student: DualEncoder, read: ReadTexts) -> Lessons:
    text_of = np.repeat(np.arange(len(read.texts)), [len(pairs) for pairs in read.offsets])
    inputs = student.read_mentions(read.texts, text_of, np.concatenate(read.offsets))
    vectors = teacher.encoder.encode_mentions(teacher.reader.inputs_of(read))
    return _readable(Lessons(inputs, unit(vectors)))


def _readable(lessons: Lessons) -> Lessons:
    """The lessons that both can read."""
    return lessons.take(np.flatnonzero(lessons.inputs.readable & has_vector(lessons.vectors)))


def _split(lessons: Lessons, share: float, rng: np.random.Generator) -> tuple[Lessons, Lessons]:
    """Most lessons, and some that are held out, at least one of each."""
    order = rng.permutation(len(lessons.inputs))
    count = min(max(int(share * len(order)), 1), len(order) - 1, 2000)
    return lessons.take(order[count:]), lessons.take(order[:count])


def _steps(
    student: Model,
    lessons: Sequence[Lessons],
    settings: DistillationSettings,
    rng: np.random.Generator,
) -> Iterator[float]:
    """Train, and give the loss of each step.

    lessons: Mentions, and names.
    """
    rate: Any = warmup_linear(settings.rate, max(settings.steps // 20, 1), settings.steps + 1)
    optimizer = Adam(rate, L2=0.0, use_averages=False)
    for _ in range(settings.steps):
        batch = [part.take(rng.integers(len(part.inputs), size=settings.batch)) for part in lessons]
        yield train_step(student, batch, settings.target)
        student.finish_update(optimizer)
        optimizer.step_schedules()


def train_step(student: Model, batch: Sequence[Lessons], target: str) -> float:
    """Compute a batch's loss, leaving gradients in the student.

    batch: Mentions, and names.
    """
    towers = [student.get_ref("mention"), student.get_ref("entity")]
    outputs = [tower.begin_update(part.inputs) for tower, part in zip(towers, batch)]
    raw = np.concatenate([tower.ops.to_numpy(out) for tower, (out, _) in zip(towers, outputs)])
    vectors = unit(raw)
    taught = np.concatenate([part.vectors for part in batch])
    loss, d_vectors = LOSSES[target](vectors, taught)
    d_raw = Cosine().prepare_backward(raw, d_vectors).astype(np.float32)
    start = 0
    for tower, (output, backprop) in zip(towers, outputs):
        ops: Any = tower.ops
        backprop(ops.asarray2f(d_raw[start : start + len(output)]))
        start += len(output)
    return loss


def vector_loss(vectors: np.ndarray, taught: np.ndarray) -> tuple[float, np.ndarray]:
    """The mean squared distance to taught vectors (n, d), with its gradient."""
    difference = vectors - taught
    return float((difference**2).sum() / len(vectors)), 2 * difference / len(vectors)


def similarity_loss(vectors: np.ndarray, taught: np.ndarray) -> tuple[float, np.ndarray]:
    """Squared difference of pairwise similarities, with gradient. The mean over all pairs, times n.

    vectors: (n, d) float32.
    taught: (n, e) float32.
    """
    difference = vectors @ vectors.T - taught @ taught.T
    return float((difference**2).sum() / len(vectors)), 4 * difference @ vectors / len(vectors)


LOSSES = {"vectors": vector_loss, "similarities": similarity_loss}


def agreement(student: Model, lessons: Sequence[Lessons], target: str) -> float:
    """Agreement of student and teacher. See ``DistillationReport``."""
    encoder = DualEncoder(student)
    mentions, names = lessons
    own = np.concatenate(
        [encoder.encode_mentions(mentions.inputs), encoder.encode_texts(names.inputs)]
    )
    own = unit(own)
    taught = np.concatenate([mentions.vectors, names.vectors])
    if target == "vectors":
        return float(np.einsum("nd,nd->n", own, taught).mean())
    upper = np.triu_indices(len(own), 1)
    return float(np.corrcoef((own @ own.T)[upper], (taught @ taught.T)[upper])[0, 1])
