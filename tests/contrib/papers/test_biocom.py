"""BioCoM's variants "all" and "one": which mentions are tagged, and which a step trains on."""

import pytest
from spacy.training import Example
from spacy.training.initialize import init_nlp
from spacy.util import registry
from thinc.api import fix_random_seed

from spacy_arbo_el.encoders.word_pieces import START_PLACE

from ...linker.world import annotated, write_corpus
from ...systems import load_system

TEXT = "[Amazon|river] [Mercury|planet] [Amazon|river]. [Jaguar|car]"
MODEL = "components.arbo_linker.model.mention"
SMALL = {
    "biocom": {f"{MODEL}.passage": 48, f"{MODEL}.text": 16},
    "biocom_one": {f"{MODEL}.window": 48},
}


@pytest.mark.parametrize(
    "system, passages, tags, trained", [("biocom", 1, 4, 3), ("biocom_one", 4, 1, 2)]
)
def test_mentions_of_a_sentence_are_tagged_and_trained_together_or_alone(
    tmp_path, tiny_bert, system, passages, tags, trained
):
    fix_random_seed(0)
    paths = {**write_corpus(tmp_path), "paths.encoder": str(tiny_bert), **SMALL[system]}
    config = load_system(system, {**paths, "training.batcher.n_concepts": 1}, interpolate=True)
    nlp = init_nlp(config)
    linker = nlp.get_pipe("arbo_linker")
    doc = annotated(nlp, TEXT)
    inputs = linker.reader.read_docs([doc]).inputs
    start = linker.model.get_ref("mention").shims[0].word_pieces.specials[START_PLACE]
    assert inputs.passages == passages
    assert (inputs.ids == start).sum() == passages * tags
    assert (inputs.ids[inputs.offsets[inputs.passage] + inputs.marker] == start).all()
    # The two mentions of the river, and what stands beside them.
    steps, step = [], linker.trainer.step
    linker.trainer.step = lambda rows: steps.append(len(rows)) or step(rows)
    batcher = registry.resolve({"batcher": config["training"]["batcher"]})["batcher"]
    for batch in batcher([Example(nlp.make_doc(doc.text), doc)]):
        nlp.update(batch)
    assert max(steps) == trained
