"""The generated pages are fresh, complete, and nothing in docs/ links to what is not there."""

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

from mpkc.dialects import get_all_dialects
from mpkc.passes import get_all_passes

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted([*DOCS.rglob("*.md"), *ROOT.glob("*.md")])


def tool(name: str) -> ModuleType:
    """A script of tools/ as a module."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_reference_is_what_the_code_says() -> None:
    committed = {page.name: page.read_text() for page in (DOCS / "reference").glob("*.md")}
    assert committed == tool("generate_reference").pages(), "run `make docs`"


def test_the_tutorial_is_what_its_test_says() -> None:
    assert (DOCS / "tutorial.md").read_text() == tool("generate_tutorial").tutorial(), "run `make docs`"


@pytest.mark.parametrize("name", get_all_dialects())
def test_every_operation_has_an_example(name: str) -> None:
    page, _, _ = (DOCS / "reference" / f"{name}.md").read_text().partition("## Attributes and types")
    for op in get_all_dialects()[name]().operations:
        (section,) = re.findall(rf"^### {re.escape(op.name)}$(.*?)(?=^##|\Z)", page, re.MULTILINE | re.DOTALL)
        assert re.search(rf"^(    |```mlir\n).*{re.escape(op.name)}\b", section, re.MULTILINE), op.name


def test_every_pass_shows_code() -> None:
    page = (DOCS / "reference" / "passes.md").read_text()
    for name in get_all_passes():
        (section,) = re.findall(rf"^## {name}$(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL)
        assert "\n    " in section, name


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), target


def test_the_index_has_every_page() -> None:
    linked = set(re.findall(r"\]\(([^)]+\.md)\)", (DOCS / "README.md").read_text()))
    assert linked >= {str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")} - {"README.md"}
