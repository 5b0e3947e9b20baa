"""Crafted and mixed pipelines: one message that names the file, never other contents."""

import gc
import json
import random
import shutil
import warnings
from dataclasses import replace

import numpy as np
import pytest
import spacy
import srsly
import torch

from spacy_arbo_el import NewEntities, SpanInputs, find_linker, load_pipeline, save_pipeline
from spacy_arbo_el.encoders.inputs import check_inputs
from spacy_arbo_el.encoders.serialization import TOKENIZER_FILES, load_transformer
from spacy_arbo_el.encoders.shim import shim_of
from spacy_arbo_el.linking.component_folder import CHECKSUMS, FORMAT, VERSION, ComponentFolder
from spacy_arbo_el.linking.saving import Serializer
from spacy_arbo_el.storage.files import Checksum, pack_arrays, unpack_arrays

from ..cases import cases
from ..expecting import raises, warns
from ..linker.world import DEV, unlinked_doc
from .saved import NAME, PARTS, change, contents, load_component, tiny_pipeline

# What spaCy reads of a pipeline.
SPACY_FILES = [
    "config.cfg",
    "meta.json",
    "tokenizer",
    *(f"vocab/{name}" for name in ("key2row", "lookups.bin", "strings.json", "vectors")),
    "vocab/vectors.cfg",
]


@pytest.fixture(scope="module")
def world(tiny_nlp, saved_tiny):
    """A saved pipeline, the pipeline, and what its linker holds."""
    return saved_tiny, tiny_nlp, contents(find_linker(tiny_nlp))


@pytest.fixture
def path(world, tmp_path):
    """A copy of the saved pipeline, to change."""
    return shutil.copytree(world[0], tmp_path / "model")


@pytest.fixture
def folder(world, tmp_path):
    """A copy of the saved component, to change."""
    return shutil.copytree(world[0] / NAME, tmp_path / NAME)


@pytest.fixture
def refused(world, folder):
    """Function that checks that the folder is refused, by a pattern of the message."""

    def refused(match=r"\[arbo-E"):
        with raises(match) as error:
            load_component(folder, world[1])
        return str(error.value)

    return refused


def put(folder, name, data):
    """Write a part as someone would who knows the format: with a manifest that fits."""
    (folder / name).write_bytes(data)
    before = ComponentFolder(folder)._read_manifest()
    manifest = replace(before, files={**before.files, name: Checksum.of(data)})
    (folder / "manifest.json").write_bytes(manifest.to_bytes(FORMAT, VERSION))


# Files that do not belong together


@pytest.fixture(scope="module")
def other(tiny_bert, tmp_path_factory):
    """The folder of another component."""
    change(nlp := tiny_pipeline(tiny_bert))
    find_linker(nlp).to_disk(folder := tmp_path_factory.mktemp("other") / NAME, exclude=["vocab"])
    return folder


@pytest.mark.parametrize("name", PARTS)
def test_files_that_are_missing_or_of_another_save_are_named(refused, folder, other, name):
    (folder / name).unlink()
    refused(rf"E052.*{NAME}/{name} is damaged.*missing")
    if name != "model":
        shutil.copy(other / name, folder / name)
        refused(f"{name} is damaged, or was not saved together")


def test_a_knowledge_base_of_another_save_and_no_manifest_are_refused(refused, folder, other):
    shutil.rmtree(folder / "kb")
    shutil.copytree(other / "kb", folder / "kb")
    refused("E054")
    (folder / "manifest.json").unlink()
    refused("E051.*save_pipeline")


@pytest.mark.parametrize("name", SPACY_FILES)
def test_flipped_bits_and_cut_files_of_spacy_are_named(path, name):
    data = (path / name).read_bytes()
    rng = random.Random(0)
    for _ in range(9):
        flipped = bytearray(data)
        flipped[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        (path / name).write_bytes(flipped)
        with raises(f"E061.*{name} is not as save_pipeline wrote it"):
            load_pipeline(path)
    (path / name).write_bytes(data[:-1])
    with raises("E061"):
        load_pipeline(path)
    (path / name).unlink()
    with raises("E061"):
        load_pipeline(path)


def test_all_files_of_spacy_have_a_checksum(world):
    path = world[0]
    files = {file.relative_to(path).as_posix() for file in path.rglob("*") if file.is_file()}
    assert {file for file in files if not file.startswith(NAME)} == set(SPACY_FILES)


def test_checksums_of_spacys_files_that_are_damaged_are_named(path):
    (path / NAME / CHECKSUMS).write_bytes(b"{}")
    with raises(f"E052.*{CHECKSUMS} is damaged"):
        load_pipeline(path)


def test_an_edited_config_is_kept_by_saving_again(path):
    config = path / "config.cfg"
    config.write_text(config.read_text("utf8").replace("batch_size = 1000", "batch_size = 7"))
    with raises(r"E061.*config.cfg.*spacy.load"):
        load_pipeline(path)
    save_pipeline(spacy.load(path), path)
    assert load_pipeline(path).batch_size == 7


def test_spacy_may_write_over_a_saved_pipeline(path):
    nlp = load_pipeline(path)
    nlp.config["nlp"]["batch_size"] = 7
    nlp.to_disk(path)
    assert load_pipeline(path).batch_size == 7


def test_files_outside_are_not_read_through_links(refused, folder, tmp_path):
    secret = tmp_path / "secret"
    secret.write_bytes(b"secret")
    (folder / "exemplars").unlink()
    (folder / "exemplars").symlink_to(secret)
    assert "secret" not in refused("E052")


# Crafted model bytes


@pytest.fixture
def crafted(folder):
    """Function that changes a model by a function of its message and of its encoder's."""

    def crafted(change):
        message = srsly.msgpack_loads((folder / "model").read_bytes())
        (number,) = [i for i, shims in enumerate(message["shims"]) if shims]
        shim = srsly.msgpack_loads(message["shims"][number][0])
        change(message, shim)
        message["shims"][number] = [srsly.msgpack_dumps(shim)]
        put(folder, "model", srsly.msgpack_dumps(message))

    return crafted


@pytest.mark.parametrize("name", cases("hostile_file_names"))
def test_names_of_files_in_a_crafted_model(refused, crafted, tmp_path, name):
    name = name.format(place=tmp_path) if isinstance(name, str) else name
    crafted(lambda message, shim: shim["tokenizer"].update({name: b"owned"}))
    refused("E059")
    assert not list(tmp_path.rglob("*written*"))
    assert not list(tmp_path.parent.glob("written"))


def test_code_that_comes_with_a_crafted_model_does_not_run(world, folder, crafted, tmp_path):
    place = tmp_path / "evil"
    place.mkdir()
    for file in ("modeling_evil", "tokenization_evil", "configuration_evil"):
        (place / f"{file}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()")
    evil = f"{place}--modeling_evil.Evil"

    def change(message, shim):
        shim["config"]["auto_map"] = dict.fromkeys(
            ("AutoConfig", "AutoModel", "AutoTokenizer"), evil
        )
        settings = json.loads(shim["tokenizer"]["tokenizer_config.json"])
        settings.update(auto_map={"AutoTokenizer": [evil, evil]}, name_or_path=str(place))
        settings["vocab_file"] = str(place / "modeling_evil.py")
        shim["tokenizer"]["tokenizer_config.json"] = json.dumps(settings).encode()

    crafted(change)
    found = contents(load_component(folder, world[1]))
    assert found == world[2], "what names code is left out"
    assert not (tmp_path / "ran").exists()


CONFIGS = [
    *({"model_type": value} for value in ("evil", None, "../evil")),
    *({size: 10**9} for size in ("vocab_size", "hidden_size", "num_hidden_layers")),
    *({"hidden_size": "x"}, {"num_attention_heads": 0}, {"hidden_act": "evil"}),
]
WEIGHTS = [b"", b"\xff" * 8, b"\x80\x04\x95cos\nsystem\n", b"\xff" * 100, "text"]


@pytest.mark.parametrize(
    "key, value", [*(("config", c) for c in CONFIGS), *(("state", w) for w in WEIGHTS)]
)
def test_crafted_configs_and_weights_of_the_encoder(refused, crafted, key, value):
    def change(message, shim):
        shim[key] = {**shim[key], **value} if key == "config" else value

    crafted(change)
    refused()


@pytest.mark.parametrize("part", ["text_config", "vision_config"])
def test_a_model_of_large_parts_is_refused_before_it_takes_memory(refused, crafted, part):
    config = {"model_type": "clip", part: {"hidden_size": 512, "num_hidden_layers": 4}}
    crafted(lambda message, shim: shim.update(config=config))
    refused("E202.*a larger model")


@pytest.mark.parametrize("value", [10**10, [10**10], {"num_hidden_layers": 10**10}])
def test_a_length_that_takes_much_memory_is_refused(refused, crafted, value):
    crafted(lambda message, shim: shim["config"].update(num_hidden_layers=value))
    refused("E060.*num_hidden_layers is 10,000,000,000")


def test_labels_of_a_model_take_no_memory(world, folder, crafted):
    crafted(lambda message, shim: shim["config"].update(num_labels=10**10))
    load_component(folder, world[1])


def test_a_model_of_other_shapes_is_refused_before_it_takes_memory(refused, crafted, monkeypatch):
    crafted(lambda message, shim: shim["config"].update(intermediate_size=7))
    monkeypatch.setattr(torch.nn.Module, "load_state_dict", None)
    refused("E202.*has another shape")


def test_a_model_whose_towers_lead_elsewhere(refused, crafted):
    crafted(lambda message, shim: message["nodes"][0]["refs"].update(mention=0))
    refused("E058.*mention leads to another layer")


def test_tokenizers_of_transformers_need_no_other_files(world):
    shim = shim_of(find_linker(world[1]).model.get_ref("mention"))
    message = srsly.msgpack_loads(shim.to_bytes())
    assert set(message["tokenizer"]) <= TOKENIZER_FILES
    tokenizer, transformer, *_ = load_transformer(message, "eager")
    assert tokenizer.get_vocab() == shim.tokenizer.get_vocab()
    assert transformer.config.model_type == "bert"


# Crafted arrays: whatever is changed, a message or contents that link without an error

ODD = [None, -1, 10**6, 2**62, -(2**62), "", "x", b"", [], {}, 0.5, float("nan"), True, [[]]]
NUMBERS = [-1, 2**31 - 1, 10**6, -(2**31), float("nan"), float("inf"), 0, 1]


def mutations(value, generator):
    """The value with one change somewhere inside."""
    if isinstance(value, dict) and value and generator.random() < 0.9:
        key = generator.choice(list(value))
        if generator.random() < 0.1:
            return {k: v for k, v in value.items() if k != key}
        return {**value, key: mutations(value[key], generator)}
    if isinstance(value, list) and value and generator.random() < 0.9:
        place = generator.randrange(len(value))
        if generator.random() < 0.2:
            return value[:place] + value[place + 1 :]
        return [*value[:place], mutations(value[place], generator), *value[place + 1 :]]
    if isinstance(value, np.ndarray):
        return mutated_array(value.copy(), generator)
    return generator.choice(ODD)


def mutated_array(array, generator):
    kind = generator.randrange(6)
    if kind == 0:
        return np.atleast_1d(array)[:-1]
    if kind == 1:
        return array.astype(generator.choice(["float64", "int8", "U3", "complex64", "bool"]))
    if kind == 2:
        return array.reshape(1, *array.shape)
    if kind == 3:
        return np.concatenate([np.atleast_1d(array)] * 2)
    if array.size:
        value, place = generator.choice(NUMBERS), generator.randrange(array.size)
        if array.dtype.kind == "f" or value == value and abs(value) != float("inf"):
            array.reshape(-1)[place] = value
    return array


def unpacked(data):
    """A message of msgpack with its arrays unpacked, or only arrays."""
    if data[:2] == b"PK":
        return unpack_arrays(data)
    message = srsly.msgpack_loads(data)
    if isinstance(message, dict) and "arrays" in message:
        return {**message, "arrays": unpack_arrays(message["arrays"])}
    return message


def packed(message, name):
    def pack(arrays):
        return pack_arrays({key: np.asarray(value) for key, value in arrays.items()})

    if name == "reranker":
        return pack(message)
    if isinstance(message, dict) and isinstance(message.get("arrays"), dict):
        message = {**message, "arrays": pack(message["arrays"])}
    return srsly.msgpack_dumps(message)


@pytest.mark.attack
@pytest.mark.parametrize("name", PARTS[1:])
def test_crafted_parts_are_refused_or_link(world, folder, attacks, name):
    nlp, good = world[1], (folder / name).read_bytes()
    message, generator = unpacked(good), random.Random(name)
    linker, refused, tries = load_component(folder, nlp), 0, attacks(40, 2000)
    (part,) = [one for one in Serializer(linker)._parts(["vocab"]) if one.name == name]
    for number in range(tries):
        try:
            data = packed(mutations(message, generator), name)
        except (AttributeError, TypeError, ValueError, OverflowError):
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                Serializer(linker)._load({name: data}, ["vocab"])
            except ValueError as error:
                assert "[arbo-E" in str(error), error
                refused += 1
            else:
                if number % 4 == 0 or name == "new_entities":
                    use(linker, nlp)
            part.load(good)
    assert gc.isenabled()
    print(f"{name}: {refused} of {tries} refused, the others link")
    assert refused > tries / 4


def use(linker, nlp):
    docs = [unlinked_doc(nlp, text) for text in DEV[:2]]
    linker.set_annotations(docs, linker.predict(docs))
    new = linker.new_entities
    for entity in list(new):
        assert new.resolve(entity.id) == entity.id
    if len(new) > 1:
        new.merge(new.ids[0], new.ids[1])
    later = [unlinked_doc(nlp, "A [zorb|x] met [Quorn Ltd|x] there.")]
    new.update(linker.corpus.discover(later))


@pytest.mark.parametrize(
    "name, values",
    [
        *(("merged_into", values) for values in ([1, 0], [0, 2**40], [0, -1])),
        *(("of_mention", values) for values in ([0, 1, 9], [0, 1, -9])),
    ],
)
def test_new_entities_that_would_crash_the_process(world, name, values):
    message = unpacked(find_linker(world[1]).new_entities.to_bytes())
    assert message["arrays"][name].shape == (len(values),)
    message["arrays"][name] = np.array(values)
    with raises("E708"):
        NewEntities.from_bytes(packed(message, "new_entities"))


def test_spans_that_lead_outside_are_refused():
    ids, places = np.arange(6, dtype=np.int32), np.array([0, 1], dtype=np.int32)
    good = SpanInputs.one_span_each(ids, np.array([0, 3, 6]), places, places, places)
    assert check_inputs(good) is good
    check_inputs(SpanInputs.empty())
    check_inputs(SpanInputs(**{**good.to_dict(), "last": places - 1}))
    wrong = {
        "offsets": ([0, 7, 6], [0, 3, 2**62], [0, -(2**62), 6], []),
        "passage": ([0, 2], [-1, 0]),
        "last": ([3, 1], [-1, -1]),
        "marker": ([-1, 1],),
        "first": ([2, 1],),
        "ids": (range(-1, 5),),
    }
    for name, values in wrong.items():
        kind = np.int64 if name in ("offsets", "passage") else np.int32
        for value in values:
            with pytest.raises(ValueError):
                check_inputs(SpanInputs(**{**good.to_dict(), name: np.array(value, kind)}))


MESSAGES = [
    *(b"", b"\xc1", b"\xdd\xff\xff\xff\xff", b"\xdf\xff\xff\xff\xff", b"\xc6\xff\xff\xff\xff"),
    b"\x91" * 100_000,
    srsly.msgpack_dumps({b"nd": True, b"type": "|O", b"shape": [1], b"data": b"\0" * 8}),
    srsly.msgpack_dumps({b"nd": True, b"type": "<f4", b"shape": [2**40], b"data": b"\0" * 8}),
    b"\xc7\x08\x01" + b"\x80\x04cos\n.",
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("data", MESSAGES)
@pytest.mark.parametrize("name", PARTS)
def test_hostile_messages(world, folder, refused, name, data):
    put(folder, name, data)
    if name == "reranker" and not data:
        load_component(folder, world[1])
    else:
        refused()
    assert gc.isenabled()


def test_corrections_of_mentions_that_are_not_stored_are_left_out(world, folder):
    """As where a program has put parts of two pipelines together."""
    items = srsly.msgpack_loads((folder / "corrections").read_bytes())
    orphan = [["0123456789abcdef", 0, 3, "THING"], "planet", [], None]
    put(folder, "corrections", srsly.msgpack_dumps([*items, orphan]))
    with warns("W515"):
        linker = load_component(folder, world[1])
    assert contents(linker) == world[2]
    use(linker, world[1])
