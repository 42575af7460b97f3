"""INPUT of the commands: an MLIR file, standard input, or a model."""

import sys
from dataclasses import dataclass
from pathlib import Path

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from mpkc.dialects.diagnostics import verify
from mpkc.models.builtin import NAMES
from mpkc.models.decode import decode_step
from mpkc.models.model import Model
from mpkc.models.source import open_model
from mpkc.parsing import STDIN, decoded, new_context, own_context, parse_module

PAGE_SIZE = 64  # positions in a page of the cache


@dataclass(frozen=True)
class Input:
    """A verified module, a context that knows its dialects, and the model it came from, if any."""

    module: ModuleOp
    ctx: Context
    model: Model | None = None


def is_model(spec: str) -> bool:
    """Whether INPUT names a model rather than MLIR; what is no file at all may be meant as one."""
    path = Path(spec)
    if spec in NAMES or path.is_dir() or path.suffix in (".gguf", ".json"):
        return True
    return spec != "-" and path.suffix != ".mlir" and not path.exists()


def read_input(spec: str, rows: int = 1, context: int | None = None, page_size: int = PAGE_SIZE) -> Input:
    """The module that INPUT stands for; of a model, its decoding step.

    Raises:
        OSError, ModelError, ParseError, OpError: where it can't be read, parsed or verified.
    """
    if is_model(spec):
        return decoding_input(open_model(spec), rows, context, page_size)
    data, name = (sys.stdin.buffer.read(), STDIN) if spec == "-" else (Path(spec).read_bytes(), spec)
    ctx = new_context()
    module = parse_module(decoded(data, name), name, ctx)
    verify(module)
    return Input(module, ctx)


def decoding_input(
    model: Model, rows: int = 1, context: int | None = None, page_size: int = PAGE_SIZE, layers: int | None = None
) -> Input:
    """The decoding step of a model for `rows` requests, whose caches hold `context` positions.

    Raises:
        ModelError: where one of the numbers does not fit the model.
    """
    module = decode_step(model.config, rows, context, page_size, layers)
    return Input(module, own_context(), model)
