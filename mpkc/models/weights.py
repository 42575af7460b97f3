"""The weights of a program in the order in which its operators read them, dequantized once and then mapped."""

import hashlib
from collections.abc import Callable

from xdsl.dialects.func import FuncOp

from mpkc.dialects.diagnostics import OpError
from mpkc.dialects.tops.base import Array
from mpkc.dialects.tops.weight import WeightOp
from mpkc.models.cache import Progress, cached_arrays
from mpkc.models.errors import ModelError
from mpkc.models.model import Model


def program_weights(model: Model, func: FuncOp, progress: Progress | None = None) -> Callable[[WeightOp], Array]:
    """A function that gives the float32 array of each weight of `func`, from the cache or placed there now.

    Raises:
        ModelError: where the model has no weights, or its files can't be read.
        OpError: where the model has no weight of that name, or of another shape.
    """
    weights = {op.key: op for op in func.walk() if isinstance(op, WeightOp)}
    shapes = {key: op.result.type.get_shape() for key, op in weights.items()}
    placed = hashlib.sha256(repr(shapes).encode()).hexdigest()

    def fill(key: str, out: Array) -> None:
        op = weights[key]
        try:
            op.place(model.tensor, out)
        except ModelError:
            raise
        except KeyError as err:
            raise OpError(op, f"{model.name} has no weight {err.args[0]!r}") from err
        except ValueError as err:
            raise OpError(op, str(err)) from err

    arrays = cached_arrays(f"{model.digest()}-{placed[:16]}", shapes, fill, progress)
    return lambda op: arrays[op.key]
