"""Hugging Face checkpoint directories and config.json files."""

import json

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from mpkc.models.errors import ModelError
from mpkc.models.source import open_model


@pytest.mark.parametrize("architecture", ["llama", "qwen3", "qwen3_moe"])
@pytest.mark.parametrize("dtype", ["F32", "F16", "BF16"])
@pytest.mark.parametrize("shards", [1, 3])
def test_config_and_tensors(tiny_checkpoint, tiny_models, architecture, dtype, shards):
    tied = architecture == "llama"
    path = tiny_checkpoint(architecture=architecture, dtype=dtype, tied=tied, shards=shards)
    model = open_model(str(path))
    assert model.config == tiny_models.tiny_config(architecture, tied, name=path.name)
    assert model.has_weights
    for name, weight in tiny_models.tiny_weights(model.config).items():
        found = model.tensor(name)
        assert found.dtype == np.float32
        assert found.shape == model.tensor_shape(name)
        stored = {
            "F32": lambda w: w,
            "F16": lambda w: w.astype(np.float16).astype(np.float32),
            "BF16": lambda w: (w.view(np.uint32) & 0xFFFF0000).view(np.float32),
        }[dtype](weight)
        assert np.array_equal(found, stored), name
        assert found.flags.aligned
        assert found.flags.c_contiguous


def test_config_alone_has_shapes(tmp_path, tiny_models):
    (tmp_path / "small.json").write_text(json.dumps(tiny_models.hf_config("qwen3_moe", tied=False)))
    model = open_model(str(tmp_path / "small.json"))
    assert model.config == tiny_models.tiny_config("qwen3_moe", tied=False, name="small")
    assert not model.has_weights
    assert model.tensor_shape("layers.1.expert_down") == (8, 192, 64)
    for ask in (lambda: model.tensor("embed"), model.tokenizer):
        with pytest.raises(ModelError, match="small is a configuration and has no"):
            ask()


def test_directory_without_weights_has_shapes_and_tokenizer(tmp_path, tiny_models):
    path = tiny_models.write_checkpoint(tmp_path / "m")
    (path / "model.safetensors").unlink()
    model = open_model(str(path))
    assert not model.has_weights
    assert model.tokenizer().encode("a b")
    with pytest.raises(ModelError, match="no \\*.safetensors file"):
        model.tensor("embed")


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"model_type": "qwen2"}, "model_type is 'qwen2', expected one of llama, qwen3, qwen3_moe"),
        ({"model_type": 3}, "model_type is 3, expected a string"),
        ({"architectures": ["LlamaForSequenceClassification"]}, "architectures is ['LlamaForSequenceClassification']"),
        ({"hidden_act": "gelu"}, "hidden_act is 'gelu', expected 'silu'; nothing else is supported"),
        ({"attention_bias": True}, "attention_bias is True, expected False"),
        ({"mlp_bias": True}, "mlp_bias is True, expected False"),
        ({"use_sliding_window": True}, "use_sliding_window is True, expected False"),
        ({"layer_types": ["full_attention", "sliding_attention"]}, "layer_types is ['full_attention', 'sliding"),
        ({"layer_types": 3}, "layer_types is 3, expected a list of strings"),
        (
            {"rope_scaling": {"rope_type": "llama3", "factor": 8.0}},
            "rope_scaling.rope_type is 'llama3', expected 'default'",
        ),
        ({"rope_scaling": {"factor": 8.0}}, "rope_scaling.factor is 8.0"),
        ({"rope_scaling": 8}, "rope_scaling is 8, expected an object"),
        ({"rope_parameters": {"rope_type": "yarn"}}, "rope_parameters.rope_type is 'yarn', expected 'default'"),
        ({"rope_parameters": {"full_attention": {"rope_theta": 5e6}}}, "rope_parameters.rope_theta is missing"),
        ({"quantization_config": {"bits": 4}}, "quantized checkpoints are not supported"),
        ({"hidden_size": "192"}, "hidden_size is '192', expected an integer from 1"),
        ({"hidden_size": True}, "hidden_size is True, expected an integer from 1"),
        ({"hidden_size": -192}, "hidden_size is -192, expected an integer from 1"),
        ({"num_hidden_layers": 10**9}, "num_hidden_layers is 1000000000, expected an integer from 1 to 4096"),
        ({"num_attention_heads": None}, "num_attention_heads is missing"),
        ({"num_key_value_heads": 2}, "3 heads are not a multiple of 2 kv heads"),
        ({"head_dim": 63}, "head_dim is 63, expected an even number"),
        ({"rms_norm_eps": float("nan")}, "rms_norm_eps is nan, expected a positive number"),
        ({"rope_theta": "10000"}, "rope_theta is '10000', expected a positive number"),
        ({"eos_token_id": ["</s>"]}, "eos_token_id is ['</s>'], expected integers"),
        ({"eos_token_id": 1024}, "eos [1024] is outside of the vocabulary of 1024"),
        ({"tie_word_embeddings": "yes"}, "tie_word_embeddings is 'yes', expected true or false"),
    ],
)
def test_refused_by_name(tmp_path, tiny_models, changes, told):
    refused(tmp_path, tiny_models.hf_config() | changes, told)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"norm_topk_prob": False}, "norm_topk_prob is False, expected true"),
        ({"norm_topk_prob": None}, "norm_topk_prob is missing, expected true"),
        ({"decoder_sparse_step": 2}, "decoder_sparse_step is 2, expected 1"),
        ({"mlp_only_layers": [0]}, "mlp_only_layers is [0], expected []"),
        ({"num_experts_per_tok": 9}, "9 of 8 experts cannot be active"),
    ],
)
def test_experts_refused_by_name(tmp_path, tiny_models, changes, told):
    refused(tmp_path, tiny_models.hf_config("qwen3_moe") | changes, told)


def refused(tmp_path, config, told):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config))
    with pytest.raises(ModelError) as error:
        open_model(str(path))
    assert told in str(error.value)
    assert str(error.value).startswith(str(path))
    assert "\n" not in str(error.value)


def test_fields_of_newer_files(tmp_path, tiny_models):
    """transformers 5 has the rotary embedding's base in an object of its own."""
    values = tiny_models.hf_config("qwen3") | {"rope_parameters": {"rope_type": "default", "rope_theta": 5e6}}
    del values["rope_theta"]
    (tmp_path / "config.json").write_text(json.dumps(values | {"layer_types": ["full_attention"] * 2}))
    (tmp_path / "generation_config.json").write_text(json.dumps({"eos_token_id": [7, 8]}))
    config = open_model(str(tmp_path / "config.json")).config
    assert (config.rope_base, config.eos, config.name) == (5e6, (7, 8), tmp_path.name)


def rewrite(path, change):
    tensors = load_file(path / "model.safetensors")
    change(tensors)
    save_file(tensors, path / "model.safetensors")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda t: t.pop("model.norm.weight"), "tensor 'model.norm.weight' of shape [192] is missing"),
        (
            lambda t: t.update({"model.layers.1.self_attn.q_proj.bias": np.zeros(192, np.float32)}),
            "tensor 'model.layers.1.self_attn.q_proj.bias': not a part of any supported architecture",
        ),
        (
            lambda t: t.update({"model.norm.weight": np.zeros(191, np.float32)}),
            "tensor 'model.norm.weight' has shape [191], expected [192]",
        ),
        (
            lambda t: t.update({"model.norm.weight": np.zeros(192, np.int32)}),
            "tensor 'model.norm.weight' is I32, supported: F32, F16, BF16",
        ),
        (
            lambda t: t.update({"lm_head.weight": np.zeros((1024, 192), np.float32)}),
            "tie_word_embeddings is true, but lm_head.weight differs from model.embed_tokens.weight",
        ),
    ],
)
def test_tensors_are_checked(tmp_path, tiny_models, change, told):
    path = tiny_models.write_checkpoint(tmp_path / "m")
    rewrite(path, change)
    with pytest.raises(ModelError) as error:
        open_model(str(path))
    assert told in str(error.value)
    assert str(path) in str(error.value)


def test_what_may_be_left_over(tmp_path, tiny_models):
    path = tiny_models.write_checkpoint(tmp_path / "m")
    rewrite(
        path,
        lambda t: t.update(
            {
                "lm_head.weight": t["model.embed_tokens.weight"],
                "model.layers.0.self_attn.rotary_emb.inv_freq": np.zeros(32, np.float32),
            }
        ),
    )
    assert "lm_head" not in open_model(str(path)).shapes


def test_digest_follows_every_file(tmp_path, tiny_models):
    path = tiny_models.write_checkpoint(tmp_path / "m", shards=2)
    seen = {open_model(str(path)).digest()}
    assert open_model(str(path)).digest() in seen
    for name in ("config.json", "tokenizer.json", "model.safetensors.index.json"):
        (path / name).write_text((path / name).read_text() + " ")
        seen.add(open_model(str(path)).digest())
    shard = path / "model-00002-of-00002.safetensors"
    data = bytearray(shard.read_bytes())
    data[-1] ^= 1
    shard.write_bytes(data)
    seen.add(open_model(str(path)).digest())
    assert len(seen) == 5
