"""`mpkc-opt`: xdsl-opt whose operations know where they were written, and whose errors say it."""

import argparse
import inspect
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from io import BytesIO
from pathlib import Path
from types import NoneType
from typing import IO, Any, NoReturn, TypeVar, get_args, get_type_hints

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass, PassPipeline
from xdsl.printer import Printer
from xdsl.utils.arg_spec import ArgSpec, ArgSpecConvertible, parse_pipeline, parse_spec
from xdsl.utils.hints import isa, type_repr
from xdsl.xdsl_opt_main import xDSLOptMain

from mpkc.cli.common import output_file, output_path
from mpkc.cli.errors import UserError, told_in_one_line
from mpkc.dialects.diagnostics import verify
from mpkc.names import no_such
from mpkc.parsing import STDIN, LocatedParser, decoded
from mpkc.passes import get_all_passes

EXAMPLES = """examples:
  {0} program.mlir -p 'tgraph-partition{{workers=4}},tgraph-build'
  {0} model.gguf -p canonicalize | {0} - -p cse -o out.mlir
  {0} graph.mlir -t mpk-cuda
"""

Specified = TypeVar("Specified", bound=ArgSpecConvertible)


class MpkcOpt(xDSLOptMain):
    """xDSL's driver with mpkc's parser and verifier; `-` is standard input, and output files appear whole.

    Args:
        args: without the name of the command; those of the process where None.
        name: of the command, for messages.
    """

    def __init__(self, args: Sequence[str] | None = None, name: str = "mpkc-opt"):
        self.name = name
        super().__init__("Run passes on MLIR: mpkc's, xDSL's, and those of other installed packages.", args)

    def register_all_arguments(self, arg_parser: argparse.ArgumentParser) -> None:
        super().register_all_arguments(arg_parser)
        arg_parser.prog, arg_parser.epilog = self.name, EXAMPLES.format(self.name)
        arg_parser.formatter_class = argparse.RawDescriptionHelpFormatter
        arg_parser.error = self.refuse
        checks: dict[str, Callable[[str], str]] = {
            "output_file": output_file,
            "target": lambda text: self.known("target", self.available_targets, text),
            "frontend": lambda text: self.known("frontend", self.available_frontends, text),
        }
        for action in arg_parser._actions:  # pyright: ignore[reportPrivateUsage]
            action.type = checks.get(action.dest, action.type)

    def refuse(self, message: str) -> NoReturn:
        raise UserError(f"error: {message}\n{self.name} --help shows how")

    def known(self, what: str, available: Mapping[str, Any], text: str) -> str:
        """A target or a frontend as it is written, where there is one of that name that takes those options."""
        spec = parse_spec(text)
        if spec.name not in available:
            raise UserError(f"error: {no_such(what, spec.name, available)}")
        factory = available[spec.name]
        if not inspect.signature(factory).parameters:
            specified(what, factory(), spec)
        return text

    def get_input_stream(self) -> tuple[IO[bytes], str]:
        path, frontends = self.args.input_file, self.available_frontends
        if path in (None, "-"):
            return BytesIO(sys.stdin.buffer.read()), "mlir"
        suffix = Path(path).suffix
        if not self.args.frontend and suffix.removeprefix(".") not in frontends and Path(path).is_file():
            raise UserError(f"error: {path}: nothing reads '{suffix}' files: name a frontend, -f {'|'.join(frontends)}")
        file, extension = super().get_input_stream()
        return file, "mlir" if self.args.frontend else extension  # xDSL looks it up even where -f is given

    def get_input_name(self) -> str:
        return STDIN if self.args.input_file in (None, "-") else self.args.input_file

    def parse_chunk(self, chunk: IO[bytes], file_extension: str, start_offset: int = 0) -> ModuleOp | None:
        if (self.args.frontend or file_extension) != "mlir":
            return super().parse_chunk(chunk, file_extension, start_offset)
        name = self.get_input_name()
        parser = LocatedParser(self.ctx, decoded(chunk.read(), name), name, start_offset)
        return parser.parse_module(not self.args.no_implicit_module)

    def setup_pipeline(self) -> None:
        started = time.perf_counter()

        def between(previous: ModulePass | None, module: ModuleOp, following: ModulePass | None) -> None:
            nonlocal started
            if self.args.time_passes and previous is not None:
                print(f"Pass {previous.name} took {time.perf_counter() - started} seconds")
            if not self.args.disable_verify:
                verify(module)
            if self.args.print_between_passes and previous and following:
                print(f"IR after {previous.name}:")
                Printer().print_op(module)
                print("\n\n")
            started = time.perf_counter()

        self.pipeline = PassPipeline(tuple(map(self.pass_of, parse_pipeline(self.args.passes))), between)

    def pass_of(self, spec: ArgSpec) -> ModulePass:
        """The pass of that name, with its options."""
        if spec.name not in self.available_passes:
            where = f"{self.name} --help lists them"
            raise UserError(f"error: {no_such('pass', spec.name, get_all_passes(), self.available_passes, where)}")
        return specified("pass", self.available_passes[spec.name](), spec)

    def run(self) -> None:
        if self.args.output_file is None:
            return super().run()
        with output_path(Path(self.args.output_file)) as part:
            self.args.output_file = str(part)
            super().run()


def specified(what: str, kind: type[Specified], spec: ArgSpec) -> Specified:
    """A pass, target or frontend with the options that `spec` has.

    Raises:
        UserError: where it has no such option, or the option takes values of another type.
    """
    hints = get_type_hints(kind)
    types = {field.name: hints[field.name] for field in fields(kind)}
    for option, values in spec.normalize_parameter_names().parameters.items():
        if option not in types:
            raise UserError(f"error: {no_such(f'option of {what} {spec.name}', option, types)}")
        if not fits(values, types[option]):
            given = ",".join(map(str, values)) or "nothing"
            raise UserError(
                f"error: {what} {spec.name}: option {option} takes {type_repr(types[option])}, but was given {given}"
            )
    try:
        return kind.from_spec(spec)
    except ValueError as err:
        raise UserError(f"error: {what} {spec.name}: {err}") from err


def fits(values: tuple[Any, ...], type_: Any) -> bool:
    """Whether an option of that type takes these values, as xDSL decides it."""
    if not values:
        return NoneType in get_args(type_)
    return isa(values, type_) or (len(values) == 1 and isa(values[0], type_))


def run_opt(args: Sequence[str] | None, name: str) -> None:
    """Run the tool with `args`, those of the process where None; raises what `told_in_one_line` tells."""
    MpkcOpt(args, name).run()


def main() -> None:
    """`mpkc-opt`: what a user can get wrong is told in one message, exit code 2."""
    with told_in_one_line():
        run_opt(None, "mpkc-opt")


if __name__ == "__main__":
    main()
