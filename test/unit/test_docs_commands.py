"""The examples of docs/verify.md, simulate.md and semaphores.md: files, and commands that print what stands below."""

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from mpkc.cli import main

DOCS = Path(__file__).parents[2] / "docs"


def examples(page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (DOCS / page).read_text(), re.S)


COMMANDS = [
    (page, number, text)
    for page in ("verify.md", "simulate.md", "semaphores.md")
    for number, text in enumerate(examples(page, "console"))
]


def plain(text: str) -> list[str]:
    """Lines without the CPU seconds of checks, which differ from run to run."""
    return [re.sub(r" +\d+\.\d\d$", " 0.00", line.rstrip()) for line in text.rstrip().splitlines()]


def test_there_are_examples() -> None:
    assert [page for page, _, _ in COMMANDS] == ["verify.md"] + ["simulate.md"] * 3 + ["semaphores.md"] * 9


@pytest.mark.parametrize(("page", "number", "text"), COMMANDS, ids=[f"{page}-{number}" for page, number, _ in COMMANDS])
def test_a_command_prints_what_stands_below_it(
    page: str, number: int, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for file in examples(page, "mlir"):
        name = file.partition("\n")[0]
        (tmp_path / name.removeprefix("// ")).write_text(file)
    monkeypatch.chdir(tmp_path)
    command, _, expected = text.partition("\n")
    result = CliRunner().invoke(main, shlex.split(command.removeprefix("$ mpkc ")))
    assert plain(result.stdout) == plain(expected)
    is_wrong = re.search(r"^deadlock( in iteration \d+)?$|no events order", expected, re.MULTILINE)
    assert result.exit_code == (is_wrong is not None)


def test_arrays_for_a_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The example of semaphores.md that writes an .npz file, and the commands that take it."""
    (tmp_path / "examples").symlink_to(DOCS.parent / "examples")
    monkeypatch.chdir(tmp_path)
    (program,) = (text for text in examples("semaphores.md", "python") if "np.savez" in text)
    exec(program, {})
    commands = re.findall(r"^    mpkc (.* in\.npz.*)$", (DOCS / "semaphores.md").read_text(), re.M)
    assert len(commands) == 2
    for command in commands:
        result = CliRunner().invoke(main, shlex.split(command))
        assert result.exit_code == 0, result.output
