"""Link a Ray ``Dataset`` of documents."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, Iterable, List, Optional, Union

from spacy.util import minibatch

from ..corpora.docs import to_doc, unlinked
from ..corpora.json_documents import Problem, text_of_record
from ..extras import import_pyarrow, import_ray
from ..linking.corpus import BATCH
from ..mentions.record import text_fingerprint
from .identity import fingerprint, model_folder, versions
from .on_ray import RaySettings, prepare
from .output import Row, rows_of, schema
from .worker import PipelineWorker

if TYPE_CHECKING:
    import pyarrow
    import ray.data

# Documents that a worker is given at a time.
BATCH_SIZE = 256


def link_dataset(
    dataset: "ray.data.Dataset",
    model: Union[str, Path],
    *,
    workers: int = 1,
    cpus_per_worker: int = 1,
    gpus_per_worker: float = 0.0,
    batch_size: int = BATCH_SIZE,
    text: str = "text",
    id: str = "id",
    mentions: str = "mentions",
    threshold: Optional[float] = None,
    find: str = "",
) -> "ray.data.Dataset":
    """Link the documents of a dataset, each for itself.

    Each worker loads the pipeline from its folder, which all machines must reach under this path.
    Rows come in any order, unless ``DataContext.execution_options.preserve_order`` is set.

    dataset: One row per document. Columns that are not named here are not read.
    model: The folder of the pipeline, or the name of an installed package.
    workers: How many workers.
    cpus_per_worker: CPUs of a worker, as many threads.
    gpus_per_worker: GPUs of a worker; 0.5 for two workers on one.
    batch_size: Documents that a worker is given at a time. A worker that is killed costs its batch.
    text: The column of texts.
    id: The column of ids, strings or whole numbers. Otherwise an id is the fingerprint
        of the text.
    mentions: The column of mentions: lists of dicts with ``start``, ``end`` and ``label``. It may
        be missing where mentions are found.
    threshold: The threshold for links; by default the linker's own.
    find: How mentions are found: "" for those of the column, "names" for names of the knowledge
        base, "pipeline" for the components before the linker, or another pipeline.
    RETURNS: One row per mention, with the columns document, start, end, text, label, kb_id, title,
        score, new_entity, evidence and error. A document that cannot be read or linked is one row
        with the reason in ``error``, which is null otherwise, and nothing but its id.
    """
    import_ray()
    folder = model_folder(Path(model)).resolve()
    settings = RaySettings(workers=workers, cpus=cpus_per_worker, gpus=gpus_per_worker)
    return dataset.map_batches(
        DatasetWorker,
        batch_size=batch_size,
        batch_format="pyarrow",
        fn_constructor_kwargs={
            "model": str(folder),
            "pipeline": fingerprint(folder),
            "packages": versions(),
            "columns": {"text": text, "id": id, "mentions": mentions},
            "threshold": threshold,
            "find": find,
            "settings": settings,
        },
        **settings.actors(),
    )


class DatasetWorker:
    """A Ray actor. Tables of documents -> tables of mentions.

    columns: The columns of the dataset by what they hold.
    settings: What the actor was given.
    """

    def __init__(
        self,
        model: str,
        pipeline: str,
        packages: Dict[str, str],
        columns: Dict[str, str],
        threshold: Optional[float],
        find: str,
        settings: RaySettings,
    ) -> None:
        prepare(settings)
        self.columns = columns
        self.pipeline = PipelineWorker(Path(model), pipeline, packages, threshold, find)

    def __call__(self, batch: "pyarrow.Table") -> "pyarrow.Table":
        names = {given: name for name, given in self.columns.items()}
        present = [given for given in names if given in batch.column_names]
        records = batch.select(present).rename_columns([names[given] for given in present])
        pa = import_pyarrow()
        with self.pipeline.nlp.memory_zone():
            rows = self.rows(records.to_pylist())
        return pa.Table.from_pylist(rows, schema=schema().append(pa.field("error", pa.string())))

    def rows(self, records: Iterable[Dict[str, Any]]) -> List[Row]:
        """Mentions of documents as rows, and documents with errors."""
        errors: List[Row] = []

        def bad(id_: str, reason: Exception) -> None:
            errors.append({"document": id_, "error": str(reason)})

        docs = []
        for record in records:
            given = record.get("id")
            name = text_fingerprint(str(record.get("text"))) if given is None else str(given)
            try:
                doc = unlinked(to_doc(self.pipeline.nlp, text_of_record(record, name)))
            except (Problem, ValueError) as error:
                bad(name, error)
                continue
            if len(doc):
                docs.append(doc)
        linker = self.pipeline.linker
        place = linker.mentions.getter, linker.cfg["extension"]
        rows: List[Row] = []
        for part in minibatch(docs, BATCH):
            found = self.pipeline.find(part, lambda doc, e: bad(doc.user_data["doc_id"], e))
            linked = self.pipeline.link(found, lambda doc, e: bad(doc.user_data["doc_id"], e))
            rows.extend(rows_of(linked, *place))
        return rows + errors
