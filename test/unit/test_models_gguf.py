"""GGUF files of every supported architecture and encoding."""

import gguf
import numpy as np
import pytest

from mpkc.models.errors import ModelError
from mpkc.models.gguf_file import ENCODINGS, read_gguf
from mpkc.models.source import open_model


@pytest.mark.parametrize("architecture", ["llama", "qwen3", "qwen3_moe"])
@pytest.mark.parametrize("encoding", ["F32", "Q8_0", "Q4_1"])
def test_config_and_tensors(tiny_gguf, tiny_models, architecture, encoding):
    tied = architecture == "llama"
    model = open_model(str(tiny_gguf(architecture=architecture, encoding=encoding, tied=tied)))
    style = "pairs" if architecture == "llama" else "halves"
    assert model.config == tiny_models.tiny_config(architecture, tied, style, name=model.name)
    assert model.has_weights
    kind = gguf.GGMLQuantizationType[encoding]
    for name, weight in tiny_models.tiny_weights(model.config).items():
        found = model.tensor(name)
        assert found.dtype == np.float32
        assert found.shape == model.tensor_shape(name) == weight.shape
        stored = gguf.dequantize(gguf.quantize(weight, kind), kind) if weight.ndim > 1 else weight
        assert np.array_equal(found, stored), name


def test_read_as_the_gguf_package_does(tiny_gguf):
    path = tiny_gguf(encoding="Q4_1")
    file, reference = read_gguf(path), gguf.GGUFReader(path)
    assert file.tensors.keys() == {tensor.name for tensor in reference.tensors}
    for tensor in reference.tensors:
        assert np.array_equal(file.read(tensor.name), gguf.dequantize(tensor.data, tensor.tensor_type))
    fields = {key: f.contents() for key, f in reference.fields.items() if not key.startswith("GGUF.")}
    assert {key: v.tolist() if isinstance(v, np.ndarray) else v for key, v in file.metadata.items()} == fields


def test_encodings_are_those_of_the_gguf_package():
    for number, (name, block, size) in ENCODINGS.items():
        kind = gguf.GGMLQuantizationType(number)
        assert (kind.name, gguf.GGML_QUANT_SIZES[kind]) == (name, (block, size))


@pytest.mark.parametrize("name", [e.name for e in ENCODINGS.values()])
def test_every_encoding_can_be_dequantized(name):
    kind = gguf.GGMLQuantizationType[name]
    _, size = gguf.GGML_QUANT_SIZES[kind]
    assert gguf.dequantize(np.zeros((2, size), np.uint8), kind).dtype == np.float32


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        (
            {"general.architecture": "gemma3"},
            "general.architecture is 'gemma3', expected one of llama, qwen3, qwen3moe",
        ),
        ({"llama.rope.scaling.type": "yarn"}, "llama.rope.scaling.type is 'yarn', expected 'none'"),
        ({"llama.rope.scaling.factor": 4.0}, "'llama.rope.scaling.factor': not supported"),
        ({"llama.attention.sliding_window": 128}, "llama.attention.sliding_window is 128"),
        ({"llama.logit_scale": 0.5}, "'llama.logit_scale': not supported"),
        ({"llama.expert_count": 8}, "llama.expert_count is 8, expected 0"),
        ({"llama.rope.dimension_count": 32}, "llama.rope.dimension_count is 32, expected 64"),
        ({"llama.attention.value_length": 32}, "llama.attention.value_length is 32, expected 64"),
        ({"llama.attention.head_count": 0}, "llama.attention.head_count is 0, expected an integer from 1"),
        ({"llama.attention.head_count_kv": 2}, "3 heads are not a multiple of 2 kv heads"),
        ({"llama.attention.head_count": [3, 3]}, "llama.attention.head_count is array"),
        ({"llama.block_count": 3_000_000_000}, "llama.block_count is 3000000000, expected an integer from 1 to 20"),
        ({"llama.block_count": 3}, "tensor 'blk.2.attn_norm.weight' of shape [192] is missing"),
        ({"llama.block_count": 1}, "tensor 'blk.1.attn_k.weight' and 8 more: not a part of"),
        ({"llama.embedding_length": 256}, "'token_embd.weight' has shape [1024, 192], expected [1024, 256]"),
        ({"llama.attention.layer_norm_rms_epsilon": 0.0}, "expected a positive number"),
        ({"llama.attention.layer_norm_rms_epsilon": "small"}, "is 'small', expected a positive number"),
        ({"llama.context_length": None}, "llama.context_length is missing"),
        ({"tokenizer.ggml.eos_token_id": 5000}, "outside of the vocabulary of 1024"),
        ({"split.count": 3}, "split.count is 3"),
    ],
)
def test_refused_by_name(tmp_path, tiny_models, changes, told):
    path = tiny_models.write_gguf(tmp_path / "m.gguf", metadata=changes)
    with pytest.raises(ModelError) as error:
        open_model(str(path))
    assert told in str(error.value)
    assert str(error.value).startswith(str(path))
    assert "\n" not in str(error.value)


def test_vocabulary_is_counted_where_it_is_not_told(tmp_path, tiny_models):
    path = tiny_models.write_gguf(tmp_path / "m.gguf", metadata={"llama.vocab_size": None})
    assert open_model(str(path)).config.vocabulary == tiny_models.VOCABULARY


def test_unsupported_encoding_is_refused_by_name(tmp_path):
    writer = gguf.GGUFWriter(tmp_path / "m.gguf", "llama")
    writer.add_tensor("token_embd.weight", np.zeros((4, 4), np.float64))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    with pytest.raises(ModelError, match=r"'token_embd.weight' has the unsupported ggml type 28; supported: F32, F16"):
        open_model(str(tmp_path / "m.gguf"))


def test_unknown_tensor_name(tiny_gguf):
    model = open_model(str(tiny_gguf()))
    for name in ("lm_head", "layers.2.q", "layers.0.nothing", "blk.0.attn_q.weight"):
        with pytest.raises(KeyError):
            model.tensor(name)
