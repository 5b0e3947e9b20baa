"""Damaged and crafted pipelines: one message that names the file, never other contents."""

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

from spacy_arbo_el import load_pipeline, save_pipeline
from spacy_arbo_el.discovery.new_entities import NewEntities
from spacy_arbo_el.encoders.inputs import SpanInputs
from spacy_arbo_el.encoders.serialization import TOKENIZER_FILES, load_transformer
from spacy_arbo_el.encoders.shim import shim_of
from spacy_arbo_el.linker import find_linker
from spacy_arbo_el.linking.saving import FORMAT, VERSION, ComponentFolder
from spacy_arbo_el.storage.files import pack_arrays, unpack_arrays
from spacy_arbo_el.storage.manifest import Checksum

from .saved import change, contents, tiny_pipeline
from .world import DEV, annotated, without_links

NAME = "arbo_linker"
PARTS = ("model", "exemplars", "reranker", "corrections", "new_entities")


@pytest.fixture(scope="module")
def world(tiny_bert, tmp_path_factory):
    """A saved pipeline, a linker to load it with, and what it holds."""
    nlp = tiny_pipeline(tiny_bert)
    path = tmp_path_factory.mktemp("hostile") / "model"
    save_pipeline(nlp, path)
    return path, nlp, contents(find_linker(nlp))


@pytest.fixture
def folder(world, tmp_path):
    """A copy of the saved component, to damage."""
    return shutil.copytree(world[0] / NAME, tmp_path / NAME)


def empty_linker(nlp):
    config = nlp.config.interpolate()["components"][NAME]
    config = {key: value for key, value in config.items() if key != "factory"}
    return spacy.blank("en").add_pipe(NAME, config=config)


def load(folder, nlp):
    return empty_linker(nlp).from_disk(folder, exclude=["vocab"])


def put(folder, name, data):
    """Write a part as someone would who knows the format: with a manifest that fits."""
    (folder / name).write_bytes(data)
    before = ComponentFolder(folder)._read_manifest()
    manifest = replace(before, files={**before.files, name: Checksum.of(data)})
    (folder / "manifest.json").write_bytes(manifest.to_bytes(FORMAT, VERSION))


# Damage


@pytest.mark.attack
@pytest.mark.parametrize("name", [*PARTS, "manifest.json"])
def test_flipped_bits_and_cut_files(world, folder, attacks, name):
    _, nlp, expected = world
    file, generator = folder / name, random.Random(name)
    data, refused, tries = file.read_bytes(), 0, attacks(8, 1000)
    for number in range(tries):
        damaged = bytearray(data)
        if number % 4 == 3:
            damaged = damaged[: generator.randrange(len(data))]
        else:
            damaged[generator.randrange(len(data))] ^= 1 << generator.randrange(8)
        file.write_bytes(damaged)
        try:
            # Reading checks all parts; only what is let through is worth loading.
            ComponentFolder(folder).read(PARTS, None)
        except ValueError as error:
            assert "[arbo-E05" in str(error) and str(folder) in str(error)
            assert name in str(error), "the message names the file"
            refused += 1
        else:
            assert contents(load(folder, nlp)) == expected, "in silence"
    print(f"{name}: {refused} of {tries} refused, the others of no consequence")
    assert refused > 0.9 * tries


def test_a_damaged_file_is_named_on_loading(world, folder):
    _, nlp, _ = world
    for name in PARTS:
        data = (folder / name).read_bytes()
        (folder / name).write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
        with pytest.raises(ValueError, match=rf"E052.*{NAME}/{name} is damaged.*checksum"):
            load(folder, nlp)
        (folder / name).unlink()
        with pytest.raises(ValueError, match=rf"E052.*{NAME}/{name} is damaged.*missing"):
            load(folder, nlp)
        (folder / name).write_bytes(data)
    load(folder, nlp)


def test_files_of_two_saves_do_not_mix(world, folder, tmp_path, tiny_bert):
    nlp = tiny_pipeline(tiny_bert)
    change(nlp)
    find_linker(nlp).to_disk(tmp_path / "other", exclude=["vocab"])
    for name in ("exemplars", "reranker", "corrections", "new_entities"):
        before = (folder / name).read_bytes()
        shutil.copy(tmp_path / "other" / name, folder / name)
        with pytest.raises(ValueError, match=f"{name} is damaged, or was not saved together"):
            load(folder, world[1])
        (folder / name).write_bytes(before)
    shutil.rmtree(folder / "kb")
    shutil.copytree(tmp_path / "other" / "kb", folder / "kb")
    with pytest.raises(ValueError, match="E054"):
        load(folder, world[1])


def test_without_a_manifest(world, folder):
    (folder / "manifest.json").unlink()
    with pytest.raises(ValueError, match="E051.*save_pipeline"):
        load(folder, world[1])


@pytest.mark.attack
def test_flipped_bits_in_bytes(world, attacks):
    _, nlp, expected = world
    data, generator = find_linker(nlp).to_bytes(exclude=["vocab"]), random.Random(0)
    refused, tries = 0, attacks(10, 300)
    for _ in range(tries):
        damaged = bytearray(data)
        damaged[generator.randrange(len(data))] ^= 1 << generator.randrange(8)
        linker = empty_linker(nlp)
        try:
            linker.from_bytes(bytes(damaged), exclude=["vocab"])
        except ValueError as error:
            assert "[arbo-E" in str(error)
            refused += 1
        else:
            assert contents(linker) == expected
    print(f"bytes: {refused} of {tries} refused, the others of no consequence")
    assert refused > 0.9 * tries


@pytest.mark.parametrize(
    "name", ["meta.json", "config.cfg", "tokenizer", "vocab/strings.json", "vocab/lookups.bin"]
)
def test_unreadable_files_of_spacy_are_named(world, tmp_path, name):
    path = shutil.copytree(world[0], tmp_path / "model")
    (path / name).write_bytes(b"\xff\xfe[" + (path / name).read_bytes()[:10])
    with pytest.raises(ValueError, match=rf"E056.*{name} can't be read"):
        load_pipeline(path)


# Crafted model bytes


def model_message(folder):
    message = srsly.msgpack_loads((folder / "model").read_bytes())
    (number,) = [i for i, shims in enumerate(message["shims"]) if shims]
    return message, number, srsly.msgpack_loads(message["shims"][number][0])


def put_model(folder, message, number, shim):
    message["shims"][number] = [srsly.msgpack_dumps(shim)]
    put(folder, "model", srsly.msgpack_dumps(message))


@pytest.mark.parametrize(
    "name",
    [
        "../written",
        "../../written",
        "{place}/written",
        "sub/written",
        "sub\\written",
        "tokenizer.json\0",
        "",
        ".",
        "..",
        "config.json",
        "modeling_evil.py",
        "vocab.pkl",
        "TOKENIZER.JSON",
        3,
    ],
)
def test_names_of_files_in_a_crafted_model(world, folder, tmp_path, name):
    message, number, shim = model_message(folder)
    name = name.format(place=tmp_path) if isinstance(name, str) else name
    shim["tokenizer"][name] = b"owned"
    put_model(folder, message, number, shim)
    with pytest.raises(ValueError, match="E059"):
        load(folder, world[1])
    assert not list(tmp_path.rglob("*written*")) and not list(tmp_path.parent.glob("written"))


def test_code_that_comes_with_a_crafted_model_does_not_run(world, folder, tmp_path):
    place = tmp_path / "evil"
    place.mkdir()
    for file in ("modeling_evil", "tokenization_evil", "configuration_evil"):
        (place / f"{file}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()")
    message, number, shim = model_message(folder)
    evil = f"{place}--modeling_evil.Evil"
    names = ("AutoConfig", "AutoModel", "AutoTokenizer")
    shim["config"]["auto_map"] = dict.fromkeys(names, evil)
    settings = json.loads(shim["tokenizer"]["tokenizer_config.json"])
    settings.update(auto_map={"AutoTokenizer": [evil, evil]}, name_or_path=str(place))
    settings["vocab_file"] = str(place / "modeling_evil.py")
    shim["tokenizer"]["tokenizer_config.json"] = json.dumps(settings).encode()
    put_model(folder, message, number, shim)
    assert contents(load(folder, world[1])) == world[2], "what names code is left out"
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    "change_of",
    [
        {"model_type": "evil"},
        {"model_type": None},
        {"model_type": "../evil"},
        {"vocab_size": 10**9},
        {"hidden_size": 10**9},
        {"num_hidden_layers": 10**9},
        {"hidden_size": "x"},
        {"num_attention_heads": 0},
        {"hidden_act": "evil"},
    ],
)
def test_crafted_configs_of_the_encoder(world, folder, change_of):
    message, number, shim = model_message(folder)
    shim["config"].update(change_of)
    put_model(folder, message, number, shim)
    with pytest.raises(ValueError, match=r"\[arbo-E"):
        load(folder, world[1])


@pytest.mark.parametrize(
    "state", [b"", b"\xff" * 8, b"\x80\x04\x95cos\nsystem\n", 2**62 * b"" + b"\xff" * 100, "text"]
)
def test_weights_that_are_no_safetensors(world, folder, state):
    message, number, shim = model_message(folder)
    shim["state"] = state
    put_model(folder, message, number, shim)
    with pytest.raises(ValueError, match=r"\[arbo-E"):
        load(folder, world[1])


def test_a_model_whose_towers_lead_elsewhere(world, folder):
    message, number, shim = model_message(folder)
    message["nodes"][0]["refs"]["mention"] = 0
    put_model(folder, message, number, shim)
    with pytest.raises(ValueError, match="E058.*mention leads to another layer"):
        load(folder, world[1])


def test_tokenizers_of_transformers_need_no_other_files(world):
    shim = shim_of(find_linker(world[1]).model.get_ref("mention"))
    message = srsly.msgpack_loads(shim.to_bytes())
    assert set(message["tokenizer"]) <= TOKENIZER_FILES
    tokenizer, transformer, _ = load_transformer(message, "eager")
    assert tokenizer.get_vocab() == shim.tokenizer.get_vocab()
    assert transformer.config.model_type == "bert"


# Crafted arrays: whatever is changed, a message or contents that link without an error


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
        return mutated_array(value, generator)
    odd = [None, -1, 10**6, 2**62, -(2**62), "", "x", b"", [], {}, 0.5, float("nan"), True, [[]]]
    return generator.choice(odd)


def mutated_array(array, generator):
    array = array.copy()
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
        odd = [-1, 2**31 - 1, 10**6, -(2**31), float("nan"), float("inf"), 0, 1]
        value = generator.choice(odd)
        place = generator.randrange(array.size)
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
    if name == "reranker":
        return pack_arrays({key: np.asarray(value) for key, value in message.items()})
    if isinstance(message, dict) and isinstance(message.get("arrays"), dict):
        arrays = {key: np.asarray(value) for key, value in message["arrays"].items()}
        message = {**message, "arrays": pack_arrays(arrays)}
    return srsly.msgpack_dumps(message)


@pytest.mark.attack
@pytest.mark.parametrize("name", PARTS[1:])
def test_crafted_parts_are_refused_or_link(world, folder, attacks, name):
    _, nlp, _ = world
    message, generator = unpacked((folder / name).read_bytes()), random.Random(name)
    linker, refused, tries = empty_linker(nlp), 0, attacks(40, 2000)
    linker.from_disk(folder, exclude=["vocab"])
    serializer_parts = {part.name: part for part in serializer(linker)._parts(["vocab"])}
    good = {part: (folder / part).read_bytes() for part in PARTS}
    for number in range(tries):
        try:
            data = packed(mutations(message, generator), name)
        except (AttributeError, TypeError, ValueError, OverflowError):
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                serializer(linker)._load({name: data}, ["vocab"])
            except ValueError as error:
                assert "[arbo-E" in str(error), error
                refused += 1
            else:
                if number % 4 == 0 or name == "new_entities":
                    use(linker, nlp)
            serializer_parts[name].load(good[name])
    assert gc.isenabled()
    print(f"{name}: {refused} of {tries} refused, the others link")
    assert refused > tries / 4


def serializer(linker):
    from spacy_arbo_el.linking.saving import Serializer

    return Serializer(linker)


def use(linker, nlp):
    docs = [without_links(annotated(nlp, text)) for text in DEV[:2]]
    linker.set_annotations(docs, linker.predict(docs))
    new = linker.new_entities
    for entity in list(new):
        assert new.resolve(entity.id) == entity.id
    if len(new) > 1:
        new.merge(new.ids[0], new.ids[1])
    linker.stream = True
    try:
        linker.predict([without_links(annotated(nlp, "A [zorb|x] met [Quorn Ltd|x] there."))])
    finally:
        linker.stream = False


@pytest.mark.parametrize(
    "arrays",
    [
        {"merged_into": np.array([1, 0])},
        {"merged_into": np.array([0, 2**40])},
        {"merged_into": np.array([0, -1])},
        {"of_mention": np.array([0, 1, 9])},
        {"of_mention": np.array([0, 1, -9])},
    ],
)
def test_new_entities_that_would_crash_the_process(world, arrays):
    message = unpacked(find_linker(world[1]).new_entities.to_bytes())
    assert {key: message["arrays"][key].shape for key in arrays} == {
        key: array.shape for key, array in arrays.items()
    }
    message["arrays"].update(arrays)
    with pytest.raises(ValueError, match="E708"):
        NewEntities.from_bytes(packed(message, "new_entities"))


def test_spans_that_lead_outside_are_refused():
    from spacy_arbo_el.encoders.inputs import check_inputs

    ids, places = np.arange(6, dtype=np.int32), np.array([0, 1], dtype=np.int32)
    good = SpanInputs.one_span_each(ids, np.array([0, 3, 6]), places, places, places)
    assert check_inputs(good) is good
    check_inputs(SpanInputs.empty())
    check_inputs(SpanInputs(**{**good.to_dict(), "last": places - 1}))
    for name, value in [
        ("offsets", np.array([0, 7, 6])),
        ("offsets", np.array([0, 3, 2**62])),
        ("offsets", np.array([0, -(2**62), 6])),
        ("offsets", np.array([], dtype=np.int64)),
        ("passage", np.array([0, 2])),
        ("passage", np.array([-1, 0])),
        ("last", np.array([3, 1], dtype=np.int32)),
        ("marker", np.array([-1, 1], dtype=np.int32)),
        ("first", np.array([2, 1], dtype=np.int32)),
        ("last", np.array([-1, -1], dtype=np.int32)),
        ("ids", np.arange(-1, 5, dtype=np.int32)),
    ]:
        with pytest.raises(ValueError):
            check_inputs(SpanInputs(**{**good.to_dict(), name: value}))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xc1",
        b"\xdd\xff\xff\xff\xff",
        b"\xdf\xff\xff\xff\xff",
        b"\xc6\xff\xff\xff\xff",
        b"\x91" * 100_000,
        srsly.msgpack_dumps({b"nd": True, b"type": "|O", b"shape": [1], b"data": b"\0" * 8}),
        srsly.msgpack_dumps({b"nd": True, b"type": "<f4", b"shape": [2**40], b"data": b"\0" * 8}),
        b"\xc7\x08\x01" + b"\x80\x04cos\n.",
    ],
)
@pytest.mark.parametrize("name", PARTS)
def test_hostile_messages(world, folder, name, data):
    put(folder, name, data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if name == "reranker" and not data:
            load(folder, world[1])
            return
        with pytest.raises(ValueError, match=r"\[arbo-E"):
            load(folder, world[1])
    assert gc.isenabled()


def test_corrections_of_mentions_that_are_not_stored_are_left_out(world, folder):
    """As where a program has put parts of two pipelines together."""
    items = srsly.msgpack_loads((folder / "corrections").read_bytes())
    orphan = [["0123456789abcdef", 0, 3], "planet", [], None]
    put(folder, "corrections", srsly.msgpack_dumps([*items, orphan]))
    with pytest.warns(UserWarning, match="W515.*1 corrections|W515"):
        linker = load(folder, world[1])
    assert contents(linker) == world[2]
    use(linker, world[1])


def test_files_outside_are_not_read_through_links(world, folder, tmp_path):
    secret = tmp_path / "secret"
    secret.write_bytes(b"secret")
    (folder / "exemplars").unlink()
    (folder / "exemplars").symlink_to(secret)
    with pytest.raises(ValueError, match="E052") as error:
        load(folder, world[1])
    assert "secret" not in str(error.value)
