"""Opens a model by what a user writes: a name, a file or a directory."""

from dataclasses import replace
from pathlib import Path

from mpkc.models import builtin
from mpkc.models.checkpoint import CheckpointModel
from mpkc.models.errors import ModelError
from mpkc.models.gguf_model import GgufModel
from mpkc.models.hf_config import from_hf_json
from mpkc.models.model import ConfigModel, Model


def open_model(spec: str) -> Model:
    """Open a built-in model, a .gguf file, a checkpoint directory or a config.json (shapes alone).

    Only headers are read: weights come from `Model.tensor`.

    Raises:
        ModelError: where `spec` is none of these, or what it names cannot be used.
    """
    if spec in builtin.CONFIGS:
        return ConfigModel(builtin.CONFIGS[spec])
    if spec == builtin.SMOLLM2:
        model = GgufModel(builtin.smollm2_path())
        model.config = replace(model.config, name=spec)
        return model
    path = Path(spec)
    if spec and path.is_dir():
        return CheckpointModel(path)
    if path.suffix == ".gguf" and path.is_file():
        return GgufModel(path)
    if path.suffix == ".json" and path.is_file():
        return ConfigModel(from_hf_json(path))
    what = "not a kind of model file" if spec and path.exists() else "no such model"
    names = ", ".join(builtin.NAMES)
    raise ModelError(
        f"{spec}: {what}; a model is one of {names}, a .gguf file, a checkpoint directory, or its config.json"
    )
