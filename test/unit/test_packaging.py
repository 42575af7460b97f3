"""The wheel has everything, and works outside of the checkout."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

import mpkc

ROOT = Path(__file__).parents[2]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
SETUPTOOLS = PYPROJECT["tool"]["setuptools"]
DATA = ("*.h", "*.cpp", "*.toml")


def test_every_package_is_listed() -> None:
    found = {
        ".".join([package, *init.parent.relative_to(ROOT / folder).parts])
        for package, folder in SETUPTOOLS["package-dir"].items()
        for init in (ROOT / folder).rglob("__init__.py")
    }
    assert found == set(SETUPTOOLS["packages"])


def test_every_folder_with_modules_is_a_package() -> None:
    for folder in SETUPTOOLS["package-dir"].values():
        for module in (ROOT / folder).rglob("*.py"):
            assert (module.parent / "__init__.py").exists(), f"{module.parent.relative_to(ROOT)} has no __init__.py"


def test_one_version() -> None:
    assert mpkc.__version__ == PYPROJECT["project"]["version"]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from a copy: what earlier builds left in the checkout must not get in."""
    copy, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    for file in ("pyproject.toml", "MANIFEST.in", "README.md", "LICENSE"):
        shutil.copy(ROOT / file, copy)
    for folder in SETUPTOOLS["package-dir"].values():
        shutil.copytree(ROOT / folder, copy / folder, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    pip("wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(out), str(copy))
    (built,) = out.glob("*.whl")
    return built


def pip(*arguments: str) -> None:
    command = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


def test_the_wheel_has_modules_and_data(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    for package, folder in SETUPTOOLS["package-dir"].items():
        for pattern in ("*.py", *DATA):
            for file in (ROOT / folder).rglob(pattern):
                installed = "/".join([*package.split("."), *file.relative_to(ROOT / folder).parts])
                assert installed in names
    assert "mpkc/py.typed" in names
    assert not [name for name in names if name.startswith(("dialects/", "passes/", "runtime/", "test/"))]


@pytest.fixture(scope="module")
def elsewhere(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder outside of the checkout, with an environment that has the wheel; dependencies are this one's."""
    folder = tmp_path_factory.mktemp("elsewhere")
    venv.create(folder / "venv", symlinks=True)
    python = folder / "venv" / "bin" / "python"
    pip("--python", str(python), "install", "--no-deps", "--no-index", str(wheel))
    (packages,) = (folder / "venv" / "lib").glob("python*/site-packages")
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    shutil.copy(ROOT / "examples" / "mlp.mlir", folder)
    return folder


def run(folder: Path, tool: str, *arguments: str) -> str:
    """What an installed tool prints."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    environment = kept | {"MPKC_CACHE": str(folder / "cache")}
    command = [str(folder / "venv" / "bin" / tool), *arguments]
    result = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_the_installed_package_is_the_wheel(elsewhere: Path) -> None:
    where = run(elsewhere, "python", "-c", "import mpkc.dialects, mpkc.runtime as r; print(mpkc.__file__, r.__file__)")
    assert all(Path(path).is_relative_to(elsewhere) for path in where.split())


def test_the_installed_command_says_its_version(elsewhere: Path) -> None:
    assert run(elsewhere, "mpkc", "--version") == f"mpkc, version {mpkc.__version__}\n"


def test_the_installed_command_reads_and_prints(elsewhere: Path) -> None:
    assert "tops.rms_norm" in run(elsewhere, "mpkc", "opt", "mlp.mlir")
    assert "tgraph.table" in run(elsewhere, "mpkc-opt", "mlp.mlir", "-p", "tgraph-partition{workers=2},tgraph-build")


def test_the_installed_command_runs_on_the_host(elsewhere: Path) -> None:
    """Compiles the wheel's own headers: the cache is empty."""
    printed = json.loads(run(elsewhere, "mpkc", "run", "mlp.mlir", "--target", "host", "--check", "--json"))
    assert printed["ok"]
    assert printed["results"][0]["error"] < 1e-5


def test_the_installed_command_knows_the_machines(elsewhere: Path) -> None:
    devices = json.loads(run(elsewhere, "mpkc", "devices", "--json"))["devices"]
    assert [each["name"] for each in devices] == ["generic", "cpu", "trn1", "trn2", "trn3"]


def test_stock_tools_know_what_mpkc_adds(elsewhere: Path) -> None:
    """As xdsl-opt does: dialects, passes and the target, through the entry point alone."""
    passes = "tgraph-partition{workers=2},tgraph-build,tgraph-normalize,tgraph-linearize"
    script = "from xdsl.xdsl_opt_main import xDSLOptMain; xDSLOptMain().run()"
    printed = run(elsewhere, "python", "-c", script, "mlp.mlir", "-p", passes, "-t", "mpk-cuda")
    assert printed.startswith("// Generated by mpkc from @mlp")
