"""`mpkc compile`: a program at any stage between tensor operators and a binary."""

from io import StringIO
from typing import Literal

import click
from xdsl.dialects.builtin import ModuleOp
from xdsl.printer import Printer

from mpkc.cli.common import grids_option, output_file, workers_option, write_output
from mpkc.cli.errors import UserError

Stage = Literal["tops", "tgraph", "table", "source", "binary"]
STAGES: tuple[Stage, ...] = ("tops", "tgraph", "table", "source", "binary")
ARCHS = ("sm_80", "sm_90a", "sm_100a")


@click.command(name="compile")
@click.argument("input")
@click.option(
    "--target", type=click.Choice(["cuda", "host"]), default="cuda", show_default=True, help="What it is for."
)
@click.option("--emit", type=click.Choice(STAGES), default="source", show_default=True, help="Where to stop.")
@click.option("-o", "--output", type=output_file, metavar="OUT", help="The file to write.  [default: standard output]")
@click.option("--arch", type=click.Choice(ARCHS), default="sm_90a", show_default=True, help="Of a cuda binary.")
@workers_option
@grids_option
def compile_command(
    input: str, target: str, emit: Stage, output: str | None, arch: str, workers: int | None, grids: str | None
) -> None:
    """Compile INPUT to CUDA C++, or to a stage on the way.

    \b
    INPUT is an .mlir file, - for standard input, or a model.
        mpkc compile examples/mlp.mlir
        mpkc compile smollm2-135m --emit table --workers 132
        mpkc compile examples/mlp.mlir --emit binary --arch sm_100a -o mlp.cubin
    """
    if emit == "binary" and output is None:
        raise UserError("error: a binary needs a file to go to: add -o OUT")
    write_output(compiled(input, target, emit, arch, workers, grids), output)


def compiled(spec: str, target: str, stage: Stage, arch: str, workers: int | None, grids: str | None) -> str | bytes:
    """The stage of INPUT."""
    from mpkc.inputs import read_input
    from mpkc.pipelines import Options
    from mpkc.targets import HOST_MIN_BYTES, compile_for, cores

    given = read_input(spec)
    if stage == "tops":
        return printed(given.module)
    min_bytes = HOST_MIN_BYTES if target == "host" else Options.min_bytes
    program = compile_for(given, workers or cores(), None, grids, min_bytes)
    if stage == "tgraph":
        from mpkc.passes.tgraph_unpack import UnpackPass

        UnpackPass().apply(given.ctx, given.module)
    if stage in ("tgraph", "table"):
        return printed(given.module)
    return program.source if stage == "source" else binary(program.source, target, arch)


def binary(source: str, target: str, arch: str) -> bytes:
    """A cubin, or a shared library of this machine."""
    if target == "cuda":
        from mpkc.runtime.cuda.compile import compile_cuda

        return compile_cuda(source, arch)
    from mpkc.runtime.host.build import build_host

    return build_host(source, "fast").read_bytes()


def printed(module: ModuleOp) -> str:
    """The module as text."""
    out = StringIO()
    Printer(out).print_op(module)
    return out.getvalue() + "\n"
