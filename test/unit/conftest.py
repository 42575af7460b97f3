"""Models for tests: tiny ones in every kind of file, written once a session, and the real SmolLM2."""

import importlib.util
import json
import os
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

# Read when NumPy is first imported, which nothing has done yet. OpenBLAS's threads spin while they wait: on a
# machine whose cores are taken, small products take ten times as long with them.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def tiny_models() -> ModuleType:
    """The module tiny_models.py beside this file."""
    spec = importlib.util.spec_from_file_location("tiny_models", HERE / "tiny_models.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def written_once(write: Callable[..., Path], directory: Path, suffix: str) -> Callable[..., Path]:
    def get(**options: Any) -> Path:
        path = directory / ("-".join(["tiny", *(f"{k}_{v}" for k, v in sorted(options.items()))]) + suffix)
        return path if path.exists() else write(path, **options)

    return get


@pytest.fixture(scope="session")
def tiny_gguf(tiny_models: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """`tiny_gguf(architecture="llama", encoding="Q8_0", ...)`: a file with these options of `write_gguf`."""
    return written_once(tiny_models.write_gguf, tmp_path_factory.mktemp("gguf"), ".gguf")


@pytest.fixture(scope="session")
def tiny_checkpoint(tiny_models: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """`tiny_checkpoint(architecture="qwen3", dtype="BF16", ...)`: a directory by `write_checkpoint`."""
    return written_once(tiny_models.write_checkpoint, tmp_path_factory.mktemp("checkpoints"), "")


@pytest.fixture(scope="session")
def smollm2_golden() -> dict[str, dict[str, Any]]:
    """By prompt: its ids, 24 greedy tokens, the five largest logits after it."""
    return json.loads((HERE.parent / "golden" / "smollm2.json").read_text())


@pytest.fixture(scope="session")
def smollm2() -> Any:
    """The real model; fails where its package is not installed, with the command that installs it."""
    from mpkc.models.source import open_model

    return open_model("smollm2-135m")


@pytest.fixture(scope="session")
def smollm2_weights(smollm2: Any) -> dict[str, Any]:
    """Its float32 weights by canonical name, from the user's cache: dequantized once a machine."""
    from mpkc.models.cache import cached_arrays

    def fill(name: str, array: Any) -> None:
        array[...] = smollm2.tensor(name)

    return cached_arrays(f"{smollm2.digest()}-canonical", smollm2.shapes, fill)
