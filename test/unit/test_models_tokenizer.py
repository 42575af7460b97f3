"""Byte-level BPE: from GGUF metadata and tokenizer.json, whole and as a stream."""

import sys

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from mpkc.models.errors import ModelError
from mpkc.models.source import open_model

reuse = settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(scope="module")
def tokenizer(tiny_gguf):
    return open_model(str(tiny_gguf())).tokenizer()


@pytest.fixture(scope="module")
def from_json(tiny_checkpoint):
    return open_model(str(tiny_checkpoint())).tokenizer()


def test_golden_prompts(smollm2, smollm2_golden):
    tokenizer = smollm2.tokenizer()
    assert len(smollm2_golden) == 5
    for prompt, golden in smollm2_golden.items():
        assert tokenizer.encode(prompt) == golden["prompt_ids"]
        assert tokenizer.decode(golden["prompt_ids"]) == prompt


@reuse
@given(st.text())
@example("naïve 日本語 🙂 1234\n\n  x")
def test_round_trip_whole_and_streamed(tokenizer, text):
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == text
    stream = tokenizer.stream()
    pieces = [stream.push(token) for token in ids]
    assert "".join(pieces) == text
    assert stream.finish() == ""


@reuse
@given(st.text())
def test_both_sources_agree(tokenizer, from_json, text):
    assert tokenizer.encode(text) == from_json.encode(text)


@reuse
@given(st.lists(st.integers(0, 1023)))
def test_any_ids_decode_as_the_tokenizers_package_does(tokenizer, ids):
    """Also bytes that are no text."""
    text = tokenizer.decode(ids)
    assert text == tokenizer.inner.decode(ids, skip_special_tokens=True)
    stream = tokenizer.stream()
    assert "".join(map(stream.push, ids)) + stream.finish() == text


def test_stream_never_splits_a_character(tokenizer):
    stream = tokenizer.stream()
    ids = tokenizer.encode("🙂é")
    assert [stream.push(token) for token in ids] == ["", "", "", "🙂", "", "é"]


def test_unfinished_character(tokenizer):
    stream = tokenizer.stream()
    assert [stream.push(token) for token in tokenizer.encode("🙂")[:3]] == ["", "", ""]
    assert stream.finish() == "\ufffd"


@pytest.mark.parametrize("source", ["tokenizer", "from_json"])
def test_special_and_user_defined_tokens(request, source):
    tokenizer = request.getfixturevalue(source)
    assert tokenizer.encode("<|im_start|>hi<|im_end|>")[::2] == [1, 2]
    assert tokenizer.decode(tokenizer.encode("<|im_start|>hi<|im_end|>")) == "hi"
    assert tokenizer.encode("a<think>")[-1] == 3
    assert tokenizer.decode([3]) == "<think>"


def test_digits_stand_alone_and_merges_apply(tokenizer):
    assert len(tokenizer.encode("2026")) == 4
    assert len(tokenizer.encode("th")) == 1
    assert len(tokenizer.encode(" t")) == 1


def test_first_and_last_token_where_the_file_asks(tmp_path, tiny_models):
    flags = {
        "tokenizer.ggml.add_bos_token": True,
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.add_eos_token": True,
    }
    path = tiny_models.write_gguf(tmp_path / "m.gguf", metadata=flags)
    tokenizer = open_model(str(path)).tokenizer()
    assert tokenizer.encode("th") == [1, *open_model(str(path)).tokenizer().encode("th")[1:-1], 2]
    assert len(tokenizer.encode("th")) == 3


@pytest.mark.parametrize(
    ("pre", "text", "pieces"),
    [
        ("gpt-2", "it's 123\n\nx", ["it", "'s", " 123", "\n", "\n", "x"]),
        ("smollm", "it's 123\n\nx", ["it", "'s", " ", "1", "2", "3", "\n", "\n", "x"]),
        ("qwen2", "it'S 123\n\nx", ["it", "'S", " ", "1", "2", "3", "\n\n", "x"]),
        ("qwen2", ".the  end", [".the", " ", " end"]),
        ("qwen2", "e\u0301", ["\u00e9"]),
    ],
)
def test_pre_tokenizers(tmp_path, tiny_models, pre, text, pieces):
    inner = open_model(str(tiny_models.write_gguf(tmp_path / "m.gguf", pre=pre))).tokenizer().inner
    text = inner.normalizer.normalize_str(text) if inner.normalizer else text
    spans = [span for _, span in inner.pre_tokenizer.pre_tokenize_str(text)]
    assert [text[a:b] for a, b in spans] == pieces


@pytest.mark.parametrize(
    ("metadata", "told"),
    [
        (
            {"tokenizer.ggml.pre": "llama-bpe"},
            "tokenizer.ggml.pre is 'llama-bpe', expected one of gpt-2, smollm, qwen2",
        ),
        ({"tokenizer.ggml.pre": "default"}, "tokenizer.ggml.pre is 'default', expected one of gpt-2"),
        ({"tokenizer.ggml.model": "llama"}, "tokenizer.ggml.model is 'llama', expected 'gpt2'"),
        ({"tokenizer.ggml.model": None}, "tokenizer.ggml.model is missing"),
        ({"tokenizer.ggml.tokens": ["a", "a"], "llama.vocab_size": 1024}, "the same token twice"),
        ({"tokenizer.ggml.tokens": ["a", "b"], "llama.vocab_size": 1024}, "not a tokenizer"),
        ({"tokenizer.ggml.merges": ["ab"]}, "tokenizer.ggml.merges has 'ab', expected two tokens"),
        ({"tokenizer.ggml.token_type": [1, 2]}, "tokenizer.ggml.token_type is not 1024 integers"),
        ({"tokenizer.ggml.add_bos_token": True}, "tokenizer.ggml.bos_token_id is missing"),
    ],
)
def test_refused_by_name(tmp_path, tiny_models, metadata, told):
    path = tiny_models.write_gguf(tmp_path / "m.gguf", metadata=metadata)
    with pytest.raises(ModelError) as error:
        open_model(str(path)).tokenizer()
    assert told in str(error.value)
    assert str(error.value).startswith(str(path))


@pytest.mark.parametrize("package", ["gguf", "tokenizers", "safetensors"])
def test_missing_package_names_the_command(monkeypatch, tiny_gguf, tiny_checkpoint, package):
    monkeypatch.setitem(sys.modules, package, None)
    model = open_model(str(tiny_gguf(encoding="Q8_0")))
    use = {
        "gguf": lambda: model.tensor("embed"),
        "tokenizers": model.tokenizer,
        "safetensors": lambda: open_model(str(tiny_checkpoint())),
    }
    with pytest.raises(ModelError, match=rf"^{package} is not installed: pip install 'mpkc\[models\]'$"):
        use[package]()
