"""z3, which only proofs need. It has no types that pyright could follow."""

import importlib
from typing import Any

from mpkc.runtime.errors import TargetError


def smt() -> Any:
    """The module z3.

    Raises:
        TargetError: it is not installed; the message has the command that installs it.
    """
    try:
        return importlib.import_module("z3")
    except ModuleNotFoundError as err:
        raise TargetError("z3 is not installed: pip install 'mpkc[verify]'") from err
