"""Damaged files: one line that names the file, quickly, and no memory for counts that are not true."""

import json
import struct
import tracemalloc

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mpkc.models.errors import ModelError
from mpkc.models.source import open_model

HEADER = b"GGUF" + struct.pack("<I", 3)


def key(name, kind):
    return struct.pack("<Q", len(name)) + name + struct.pack("<I", kind)


def one(name, kind, value):
    return HEADER + struct.pack("<QQ", 0, 1) + key(name, kind) + value


HUGE = 1 << 62
GGUF = {
    "empty": (b"", "not a GGUF file"),
    "wrong magic": (b"GGML" + bytes(100), "not a GGUF file"),
    "random bytes": (np.random.default_rng(0).bytes(4096), "not a GGUF file"),
    "magic alone": (b"GGUF", "values (1) do not fit into the file at byte 4"),
    "random after the magic": (b"GGUF" + np.random.default_rng(1).bytes(4096), "GGUF version"),
    "version 1": (b"GGUF" + struct.pack("<I", 1) + bytes(100), "GGUF version 1, supported are 2 and 3"),
    "big-endian": (b"GGUF" + struct.pack(">I", 3) + bytes(100), "little-endian"),
    "absurd metadata count": (
        HEADER + struct.pack("<QQ", 1, HUGE),
        "metadata entries (4611686018427387904) do not fit",
    ),
    "absurd tensor count": (HEADER + struct.pack("<QQ", HUGE, 0), "tensors (4611686018427387904) do not fit"),
    "absurd string": (one(b"k", 8, struct.pack("<Q", HUGE)), "string past the end of the file at byte 37"),
    "absurd key": (HEADER + struct.pack("<QQ", 0, 1) + struct.pack("<Q", HUGE) + bytes(99), "string past the end"),
    "absurd array": (one(b"k", 9, struct.pack("<IQ", 4, HUGE)), "array elements (4611686018427387904) do not fit"),
    "absurd string array": (one(b"k", 9, struct.pack("<IQ", 8, HUGE)), "strings (4611686018427387904) do not fit"),
    "nested array": (one(b"k", 9, struct.pack("<IQ", 9, 1) + bytes(99)), "metadata array of the unsupported type 9"),
    "unknown type": (one(b"k", 77, bytes(99)), "metadata of the unknown type 77"),
    "not UTF-8": (one(b"\xff\xfe", 4, bytes(99)), "text that is not UTF-8"),
    "no metadata": (HEADER + struct.pack("<QQ", 0, 0), "general.architecture is missing"),
    "alignment of 3": (one(b"general.alignment", 4, struct.pack("<I", 3)), "general.alignment is 3"),
    "rank of a million": (
        HEADER + struct.pack("<QQ", 1, 0) + struct.pack("<Q", 1) + b"t" + struct.pack("<I", 1_000_000) + bytes(99),
        "tensor 't' of rank 1000000",
    ),
    "absurd tensor": (
        HEADER + struct.pack("<QQ", 1, 0) + struct.pack("<Q", 1) + b"t" + struct.pack("<IQQIQ", 2, HUGE, HUGE, 0, 0),
        "after the end of the file",
    ),
}


@pytest.mark.parametrize("kind", GGUF)
def test_damaged_gguf(tmp_path, kind):
    data, told = GGUF[kind]
    path = tmp_path / "m.gguf"
    path.write_bytes(data)
    tracemalloc.start()
    message = refusal(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert message.startswith(str(path))
    assert told in message
    assert peak < 1 << 20


def refusal(path):
    with pytest.raises(ModelError) as error:
        open_model(str(path))
    assert "\n" not in str(error.value)
    return str(error.value)


@pytest.fixture(scope="module")
def whole(tiny_gguf):
    return tiny_gguf(encoding="Q4_1").read_bytes()


def test_truncated_gguf(tmp_path, whole):
    path = tmp_path / "m.gguf"
    for cut in [*range(0, 4000, 97), *range(4000, len(whole), len(whole) // 40), len(whole) - 1]:
        path.write_bytes(whole[:cut])
        assert refusal(path).startswith(str(path)), cut


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_changed_bytes_in_the_header(tmp_path, whole, data):
    """Either the model can still be used or it is refused in one line; nothing else is raised."""
    changed = bytearray(whole)
    for _ in range(data.draw(st.integers(1, 4))):
        changed[data.draw(st.integers(0, 26_000))] = data.draw(st.integers(0, 255))
    path = tmp_path / "m.gguf"
    path.write_bytes(changed)
    message = None
    try:
        model = open_model(str(path))
        model.tensor("embed")
        model.tokenizer().encode("the one")
    except ModelError as err:
        message = str(err)
    assert message is None or (str(path) in message and "\n" not in message)


CHECKPOINT = {
    "no config": (lambda d: (d / "config.json").unlink(), "it has no config.json"),
    "config not JSON": (lambda d: (d / "config.json").write_text("{'a': 1}"), "config.json:1:2: not JSON"),
    "config a list": (lambda d: (d / "config.json").write_text("[]"), "a JSON list, expected an object"),
    "config not UTF-8": (lambda d: (d / "config.json").write_bytes(b'{"a": "\xff"}'), "not UTF-8 at byte 7"),
    "config too deep": (lambda d: (d / "config.json").write_text('{"a":' * 100_000), "config.json: not JSON"),
    "config of large numbers": (lambda d: (d / "config.json").write_text('{"a":' + "9" * 9999 + "}"), "not JSON"),
    "config empty": (lambda d: (d / "config.json").write_text(""), "config.json:1:1: not JSON"),
    "config a directory": (lambda d: ((d / "config.json").unlink(), (d / "config.json").mkdir()), "no config.json"),
    "weights empty": (lambda d: (d / "model.safetensors").write_bytes(b""), "damaged safetensors file"),
    "weights random": (lambda d: (d / "model.safetensors").write_bytes(b"\x99" * 99), "damaged safetensors file"),
    "weights truncated": (lambda d: cut(d / "model.safetensors", -1), "damaged safetensors file"),
    "weights cut in the header": (lambda d: cut(d / "model.safetensors", 100), "damaged safetensors file"),
    "index not JSON": (lambda d: (d / "model.safetensors.index.json").write_text("{"), "not JSON"),
    "index of nothing": (
        lambda d: (d / "model.safetensors.index.json").write_text("{}"),
        "weight_map is not an object",
    ),
    "index of a missing file": (
        lambda d: index(d, "gone.safetensors"),
        "names 'gone.safetensors', which is not a file",
    ),
    "index of a file elsewhere": (lambda d: index(d, "../model.safetensors"), "which is not a file"),
    "a tensor twice": (
        lambda d: (d / "copy.safetensors").write_bytes((d / "model.safetensors").read_bytes()),
        "a tensor of the same name",
    ),
}


def cut(path, at):
    path.write_bytes(path.read_bytes()[:at])


def index(directory, file):
    (directory / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"model.norm.weight": file}}))


@pytest.mark.parametrize("kind", CHECKPOINT)
def test_damaged_checkpoint(tmp_path, tiny_models, kind):
    damage, told = CHECKPOINT[kind]
    directory = tiny_models.write_checkpoint(tmp_path / "m")
    damage(directory)
    message = refusal(directory)
    assert message.startswith(str(directory))
    assert told in message


TOKENIZER = {
    "none": (lambda p: p.unlink(), "tokenizer.json: no such file"),
    "not JSON": (lambda p: p.write_text("nothing"), "not JSON"),
    "another model": (lambda p: replace(p, model={"type": "Unigram"}), "model is not BPE"),
    "another decoder": (lambda p: replace(p, decoder={"type": "Metaspace"}), "decoder is not ByteLevel"),
    "no vocabulary": (lambda p: replace(p, model={"type": "BPE"}), "not a tokenizer"),
    "merge of unknown tokens": (
        lambda p: replace(p, model={"type": "BPE", "vocab": {"a": 0}, "merges": ["a b"]}),
        "not a tokenizer",
    ),
    "large ids": (lambda p: replace(p, model={"type": "BPE", "vocab": {"a": 5000}, "merges": []}), "go up to 5000"),
}


def replace(path, **parts):
    path.write_text(json.dumps(json.loads(path.read_text()) | parts))


@pytest.mark.parametrize("kind", TOKENIZER)
def test_damaged_tokenizer_json(tmp_path, tiny_models, kind):
    damage, told = TOKENIZER[kind]
    path = tiny_models.write_checkpoint(tmp_path / "m") / "tokenizer.json"
    damage(path)
    with pytest.raises(ModelError) as error:
        open_model(str(tmp_path / "m")).tokenizer()
    assert str(error.value).startswith(str(path))
    assert told in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        (
            "nothing-7b",
            "nothing-7b: no such model; a model is one of smollm2-135m, qwen3-1.7b, qwen3-8b, qwen3-30b-a3b",
        ),
        ("", "a model is one of"),
        ("/dev/null", "/dev/null: not a kind of model file"),
    ],
)
def test_no_model(spec, told):
    with pytest.raises(ModelError) as error:
        open_model(spec)
    assert told in str(error.value)


def test_weights_that_are_not_finite(tmp_path, tiny_models, tiny_gguf):
    directory = tiny_models.write_checkpoint(tmp_path / "m")
    data = bytearray((directory / "model.safetensors").read_bytes())
    data[-4:] = struct.pack("<f", float("nan"))
    (directory / "model.safetensors").write_bytes(data)
    model = open_model(str(directory))
    last = max(model.shapes, key=lambda name: model.holders[next(model.stored_names(name))].entries[
        next(model.stored_names(name))
    ]["data_offsets"])  # fmt: skip
    with pytest.raises(ModelError, match=f"tensor '{last}' has values that are not finite"):
        model.tensor(last)

    path = tmp_path / "m.gguf"
    data = bytearray(tiny_gguf(encoding="Q8_0").read_bytes())
    data[-34:-32] = struct.pack("<e", float("inf"))
    path.write_bytes(data)
    model = open_model(str(path))
    assert [name for name in model.shapes if refused(model, name)] == ["layers.1.down"]


def refused(model, name):
    try:
        return not np.isfinite(model.tensor(name)).all()
    except ModelError:
        return True
