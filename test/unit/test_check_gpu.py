"""tools/check_gpu.py, on a machine without a GPU: its steps on the host target, late and failing ones."""

import importlib.util
import json
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).parents[2] / "tools" / "check_gpu.py"


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("check_gpu", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["check_gpu"] = module
    spec.loader.exec_module(module)
    return module


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(SCRIPT), *arguments], capture_output=True, text=True, check=False)


def test_a_dry_run_checks_small_programs_on_the_host(tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    result = run("--dry-run", "--steps", "device,mlp,tiny", "--sanitizer", "--json", str(out))
    assert result.returncode == 0, result.stdout + result.stderr
    written = json.loads(out.read_text())
    assert (written["target"], written["ok"]) == ("host", True)
    verdicts = {step["name"]: step["ok"] for step in written["steps"]}
    assert verdicts == dict(device=True, mlp=True, tiny=True, memcheck=None, racecheck=None, synccheck=None)
    tiny = written["steps"][2]["data"]
    assert tiny["found"] == tiny["expected"]
    assert len(set(tiny["expected"])) > 1
    assert "the same 12 tokens" in result.stdout


def test_steps_for_the_real_model_are_all_there(tool: ModuleType) -> None:
    assert list(tool.STEPS) == ["device", "mlp", "tiny", "golden", "logits", "speed"]
    assert sum(limit for _, limit in tool.STEPS.values()) <= tool.TOTAL_S < 480


def test_an_unknown_step_is_bad_usage() -> None:
    result = run("--steps", "device,nothing")
    assert result.returncode == 2
    assert "'nothing' is none of device" in result.stderr


def supervised(tool: ModuleType, script: str, limit_s: float = 30.0) -> "object":
    return tool.supervise("step", [sys.executable, "-c", script], limit_s)


def test_a_step_that_hangs_is_killed_with_what_it_started(tool: ModuleType, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    child = f"import time, pathlib; time.sleep(1.2); pathlib.Path({str(mark)!r}).touch()"
    script = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"
    outcome = supervised(tool, script, 0.5)
    assert (outcome.ok, outcome.detail) == (False, "killed after 0.5 s")
    time.sleep(1.4)
    assert not mark.exists()


@pytest.mark.parametrize(
    ("script", "ok", "detail"),
    [
        ("print('noise'); print('[true, \"fine\", [1]]')", True, "fine"),
        ("print('[false, \"other tokens\", null]')", False, "other tokens"),
        ("raise ValueError('broken')", False, "exit code 1: ValueError: broken"),
        ("print('[true, \"fine\", null]'); import sys; sys.exit('9 errors')", False, "exit code 1: 9 errors"),
        ("print('no outcome')", False, "exit code 0"),
    ],
)
def test_what_a_step_says_is_its_outcome(tool: ModuleType, script: str, ok: bool, detail: str) -> None:
    outcome = supervised(tool, script)
    assert (outcome.ok, outcome.detail) == (ok, detail)


def test_steps_go_on_after_a_failure_but_not_without_a_device(
    tool: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    def outcomes(**scripts: str) -> list[bool | None]:
        monkeypatch.setattr(tool, "step_command", lambda name, target: [sys.executable, "-c", scripts[name]])
        return [outcome.ok for outcome in tool.check(list(scripts), "cuda", time.monotonic() + 60)]

    right, wrong = "print('[true, \"\", null]')", "print('[false, \"\", null]')"
    assert outcomes(device=right, mlp=wrong, tiny=right) == [True, False, True]
    assert outcomes(device=wrong, mlp=right) == [False, None]
    assert [outcome.ok for outcome in tool.check(["mlp"], "cuda", time.monotonic())] == [False]


@pytest.mark.parametrize(("most", "counts"), [(1, [1]), (2, [1, 2]), (131, [1, 2, 4, 8, 16, 32, 64, 128, 131])])
def test_worker_counts(tool: ModuleType, most: int, counts: list[int]) -> None:
    assert tool.worker_counts(most) == counts


def test_where_tokens_differ_is_told(tool: ModuleType) -> None:
    assert tool.same([1, 2], [1, 2]) == "the same 2 tokens"
    assert "differ from number 2 on" in tool.same([1, 3], [1, 2])
    assert "differ from number 2 on" in tool.same([1], [1, 2])
