"""Dialects of mpkc. Import as `mpkc.dialects`."""

from collections.abc import Callable
from importlib import import_module

from xdsl.ir import Dialect

DIALECTS = {
    "sem": ("mpkc.dialects.sem", "Sem"),
    "tgraph": ("mpkc.dialects.tgraph", "TGraph"),
    "tile": ("mpkc.dialects.tile", "Tile"),
    "tops": ("mpkc.dialects.tops", "Tops"),
}


def get_all_dialects() -> dict[str, Callable[[], Dialect]]:
    """Dialect factories by name; a dialect's module is imported on first use."""

    def factory(module: str, name: str) -> Callable[[], Dialect]:
        return lambda: getattr(import_module(module), name)

    return {dialect: factory(*where) for dialect, where in DIALECTS.items()}


if __name__ != "mpkc.dialects":
    raise ImportError("this package is mpkc.dialects")
