"""What the README shows runs: every block whose fence says `run`, line by line or as a program."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BLOCKS = re.findall(r"^```(\w+) run\n(.*?)^```", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)
COMMANDS = [text.strip() for language, text in BLOCKS if language == "sh"]
PROGRAMS = [text for language, text in BLOCKS if language == "python"]


def run(folder: Path, command: list[str], text: str) -> str:
    """What a command that reads `text` prints, in a folder that has the examples."""
    (folder / "examples").symlink_to(ROOT / "examples")
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    result = subprocess.run(
        command, input=text, cwd=folder, env=os.environ | {"PATH": path}, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_blocks_are_found() -> None:
    assert len(COMMANDS) == 4
    assert len(PROGRAMS) == 1


@pytest.mark.parametrize("block", COMMANDS, ids=range(len(COMMANDS)))
def test_commands(tmp_path: Path, block: str) -> None:
    assert run(tmp_path, ["bash", "-euo", "pipefail"], block)


@pytest.mark.parametrize("program", PROGRAMS)
def test_programs(tmp_path: Path, program: str) -> None:
    assert "tops.add %x, %x" in run(tmp_path, [sys.executable, "-"], program)
