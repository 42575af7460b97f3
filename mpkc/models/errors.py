"""The error of everything that reads model files, and the import of optional packages."""

import importlib
from types import ModuleType


class ModelError(ValueError):
    """A model file that cannot be used: one line that names the file, the field or tensor, and what is supported."""


def first_line(err: Exception) -> str:
    """What a package says about damage, cut to the one line that an error has."""
    return next(iter(str(err).splitlines()), type(err).__name__)


def extra(module: str) -> ModuleType:
    """Import a package of the `models` extra.

    Raises:
        ModelError: where it is not installed; the message has the command that installs it.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as err:
        raise ModelError(f"{err.name} is not installed: pip install 'mpkc[models]'") from err
