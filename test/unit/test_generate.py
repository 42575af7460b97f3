"""The main job: SmolLM2 as one mega-kernel on the CPU, against the golden tokens and the float32 reference."""

import json
from typing import Any

import pytest
from click.testing import CliRunner

from mpkc.cli import main
from mpkc.dialects.tops.function import only_function
from mpkc.generate import Agreement, new_tokens, request_for
from mpkc.inputs import decoding_input
from mpkc.models.weights import program_weights
from mpkc.runtime.host.run import HostRun
from mpkc.runtime.reference.decode import ReferenceDecoder
from mpkc.targets import decode_inputs, open_run

PROMPTS = (
    "The capital of France is",
    "Once upon a time, there was a",
    "Water boils at",
    "def fibonacci(n):",
    "The three primary colors are",
)
TOKENS = 24


@pytest.fixture(scope="module")
def weights(smollm2: Any) -> Any:
    return program_weights(smollm2, only_function(decoding_input(smollm2, context=64).module))


@pytest.fixture(scope="module")
def open_host(smollm2: Any, weights: Any) -> Any:
    """`open_host(workers)`: the model on the host target, and its reference."""

    def opened(workers: int) -> tuple[HostRun, ReferenceDecoder]:
        given = decoding_input(smollm2, context=64)
        run = open_run("host", given, weights, decode_inputs(given), workers)
        assert isinstance(run, HostRun)
        return run, ReferenceDecoder(only_function(given.module), weights)

    return opened


@pytest.mark.parametrize("prompt", PROMPTS)
def test_tokens_are_golden_and_every_logit_agrees(
    open_host: Any, smollm2: Any, smollm2_golden: dict[str, Any], prompt: str
) -> None:
    run, reference = open_host(2)
    golden = smollm2_golden[prompt]
    request = request_for(smollm2.config, smollm2.tokenizer().encode(prompt), TOKENS, lockstep=True)
    assert list(request.prompt) == golden["prompt_ids"]
    agreement = Agreement()
    told = agreement.follow(run.decode(request), lambda: run.results()[1][0], reference, request.prompt)
    assert [token.id for token in new_tokens(told, request)] == golden["new_ids"]
    assert agreement.steps == len(request.prompt) + TOKENS - 1
    assert agreement.failures == []


@pytest.mark.parametrize("workers", [1, 2, 4, 16])
def test_24_tokens_are_one_launch_whatever_the_workers(
    open_host: Any, smollm2: Any, smollm2_golden: dict[str, Any], workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, _ = open_host(workers)
    launches: list[Any] = []
    launch = run.launch
    monkeypatch.setattr(run, "launch", lambda params: (launches.append(params), launch(params)))
    golden = smollm2_golden[PROMPTS[0]]
    request = request_for(smollm2.config, golden["prompt_ids"], TOKENS)
    assert [token.id for token in new_tokens(run.decode(request), request)] == golden["new_ids"]
    assert len(launches) == 1


def test_the_command_prints_what_the_model_says(smollm2_golden: dict[str, Any]) -> None:
    arguments = ["generate", "smollm2-135m", "--prompt", PROMPTS[0], "--tokens", "8", "--check"]
    text = CliRunner().invoke(main, arguments)
    assert text.exit_code == 0
    assert text.stdout.startswith(" Paris.")
    printed = json.loads(CliRunner().invoke(main, [*arguments, "--json"]).stdout)
    assert printed["tokens"] == smollm2_golden[PROMPTS[0]]["new_ids"][:8]
    assert printed["text"].startswith(" Paris.")
    assert printed["tokens_per_second"] > 0
    assert printed["check"]["steps"] == 12
    assert printed["check"]["failures"] == []


@pytest.mark.parametrize("architecture", ["llama", "qwen3"])
def test_a_checkpoint_becomes_one_mega_kernel(tiny_checkpoint: Any, architecture: str) -> None:
    path = tiny_checkpoint(architecture=architecture)
    arguments = ["generate", str(path), "--prompt", "the sea", "--tokens", "6", "--json"]
    checked = CliRunner().invoke(main, [*arguments, "--check"])
    assert checked.exit_code == 0
    assert json.loads(checked.stdout)["check"]["steps"] >= 6
    reference = json.loads(CliRunner().invoke(main, [*arguments, "--target", "reference"]).stdout)
    assert json.loads(checked.stdout)["tokens"] == reference["tokens"]


def test_a_model_without_task_bodies_is_refused_for_the_host_only(tiny_checkpoint: Any) -> None:
    arguments = ["generate", str(tiny_checkpoint(architecture="qwen3_moe")), "--prompt", "the sea", "--tokens", "2"]
    assert CliRunner().invoke(main, [*arguments, "--target", "reference"]).exit_code == 0
    refused = CliRunner().invoke(main, arguments)
    assert refused.exit_code == 2
    assert "'tops.topk_softmax' has no task body" in refused.stderr


def test_check_fails_where_logits_differ() -> None:
    import numpy as np

    agreement = Agreement()
    expected = np.array([1.0, -10.0], np.float32)
    agreement.add(0, expected + 0.009, expected)
    assert agreement.failures == []
    agreement.add(1, expected + 0.011, expected)
    agreement.add(2, expected * np.nan, expected)
    assert len(agreement.failures) == 2
    assert "2 steps" not in agreement.summary()
    assert "differ from" in agreement.summary()
