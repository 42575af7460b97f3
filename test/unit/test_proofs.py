"""The proofs in Coq: they build, assume nothing, and are what their README says."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(not (shutil.which("coqc") or os.environ.get("CI")), reason="coqc is not installed")

PROOFS = Path(__file__).parents[2] / "proofs"
ROW = re.compile(r"^\|.*\| `([A-Z]\w*)\.(\w+)` \|$", re.MULTILINE)


def named() -> list[tuple[str, str]]:
    """File and name of each theorem in the README's table."""
    return ROW.findall((PROOFS / "README.md").read_text())


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> subprocess.CompletedProcess[str]:
    """What `make` says, in a copy that has what was built already."""
    folder = tmp_path_factory.mktemp("proofs") / "proofs"
    shutil.copytree(PROOFS, folder, ignore=shutil.ignore_patterns("checker"))
    return subprocess.run(["make", "-C", str(folder)], capture_output=True, text=True, timeout=400)


def test_every_theorem_named_is_stated_where_the_readme_says():
    assert len(named()) >= 40
    for file, name in named():
        assert re.search(rf"^Theorem {name}\b", (PROOFS / f"{file}.v").read_text(), re.MULTILINE), f"{file}.{name}"


def test_theorems_assume_nothing(built: subprocess.CompletedProcess[str]):
    assert built.returncode == 0, built.stdout[-2000:] + built.stderr[-2000:]
    for file, name in named():
        assert f"{file}.{name}: Closed under the global context" in built.stdout


def test_the_readme_names_the_theorems_that_matter():
    names = {name for _, name in named()}
    assert {"bisimulation", "word_bisimulation", "same_traces", "safety", "liveness", "deadlocks_together"} <= names
    assert {"micro_bisimulation", "epoch_bisimulation", "epochs_keep_the_bound", "epoch_word_bisimulation"} <= names
    assert {"owed_exact", "earlier_exact", "per_instruction", "signed_bisimulation", "marker_stands_for"} <= names
    assert {"tree_well_formed", "example_right", "example_runs", "example_in_words"} <= names


@pytest.mark.parametrize("leak", ["Axiom leak : False.", "Lemma leak : False. Admitted."])
def test_what_is_assumed_fails_the_build(tmp_path: Path, leak: str):
    folder = tmp_path / "proofs"
    shutil.copytree(PROOFS, folder, ignore=shutil.ignore_patterns("checker", "*.vo", "Assumptions.*"))
    (folder / "Arithmetic.v").write_text((folder / "Arithmetic.v").read_text() + leak + "\n")
    (folder / "README.md").write_text("| the decoding | `Arithmetic.decode` |\n")
    run = subprocess.run(["make", "-C", str(folder), "FILES=Arithmetic"], capture_output=True, text=True, timeout=120)
    assert run.returncode != 0
    assert "leak" in run.stdout
