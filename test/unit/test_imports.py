"""Imports go one way: dialects <- passes <- mpkc and dialects <- runtime <- mpkc."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MAY_IMPORT = {
    "dialects": {"dialects", "runtime.machine"},
    "passes": {"dialects", "passes", "runtime.machine"},
    "runtime": {"dialects", "runtime"},
    "runtime/machine": {"runtime.machine"},
}
PACKAGES = ("dialects", "passes", "runtime")


def imported(path: Path) -> Iterator[str]:
    """The modules of mpkc that a file imports, wherever in it."""
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.Import(names=names):
                yield from (name.name for name in names if name.name.partition(".")[0] == "mpkc")
            case ast.ImportFrom(module=str(module), names=names) if module.partition(".")[0] == "mpkc":
                yield from (f"{module}.{name.name}" for name in names)
            case _:
                pass


@pytest.mark.parametrize("folder", MAY_IMPORT)
def test_a_package_imports_only_what_it_may(folder: str) -> None:
    allowed = tuple(f"mpkc.{name}." for name in MAY_IMPORT[folder])
    for path in (ROOT / folder).rglob("*.py"):
        if folder == "runtime" and path.is_relative_to(ROOT / "runtime" / "machine"):
            continue
        for module in imported(path):
            assert f"{module}.".startswith(allowed), f"{path.relative_to(ROOT)} imports {module}"


def test_modules_are_imported_by_their_installed_names() -> None:
    for folder in ("mpkc", *PACKAGES, "test", "tools"):
        for path in (ROOT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
                modules += [name.name for name in node.names] if isinstance(node, ast.Import) else []
                for module in modules:
                    assert module.partition(".")[0] not in PACKAGES, f"{path.relative_to(ROOT)} imports {module}"
