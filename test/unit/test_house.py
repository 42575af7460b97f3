"""The test set-up itself: what CI and fuzzing change."""

import os
import subprocess
import sys
from pathlib import Path

CONFTEST = Path(__file__).parents[1] / "conftest.py"
TESTS = """
import pytest
from hypothesis import given, strategies

@pytest.mark.parametrize("side", [0, 1])
@given(number=strategies.integers())
def test_property(side, number):
    pass

def test_without_tool():
    pytest.skip("clang++-19 is missing")

def test_on_gpu():
    pytest.skip("no GPU here")
"""


def summary(folder: Path, *options: str, **environment: str) -> str:
    """The last line that pytest prints for TESTS under this project's conftest.py."""
    (folder / "conftest.py").write_text(CONFTEST.read_text())
    (folder / "test_sample.py").write_text(TESTS)
    clean = {name: value for name, value in os.environ.items() if name not in ("CI", "MPKC_FUZZ")}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options, str(folder)]
    result = subprocess.run(command, env=clean | environment, capture_output=True, text=True, check=False)
    return result.stdout.splitlines()[-1]


def test_outside_of_ci_tests_are_skipped(tmp_path: Path) -> None:
    assert summary(tmp_path).startswith("2 passed, 2 skipped")


def test_in_ci_only_a_missing_gpu_is_a_reason_to_skip(tmp_path: Path) -> None:
    assert summary(tmp_path, CI="true").startswith("1 failed, 2 passed, 1 skipped")


def test_fuzzing_repeats_property_tests(tmp_path: Path) -> None:
    assert summary(tmp_path, "-m", "hypothesis", MPKC_FUZZ="3").startswith("6 passed, 2 deselected")
