"""`mpkc compile`: a program at any stage between tensor operators, or engine instructions, and source or a binary."""

from io import StringIO
from typing import TYPE_CHECKING, Literal

import click
from xdsl.dialects.builtin import ModuleOp
from xdsl.printer import Printer

from mpkc.cli.common import grids_option, output_file, workers_option, write_output
from mpkc.cli.engines import OF_SEMAPHORES, refuse_given, refuse_semaphores, semaphore_options, setup_of
from mpkc.cli.errors import UserError

if TYPE_CHECKING:
    from mpkc.engines import Setup
    from mpkc.inputs import Input

Stage = Literal["tops", "tgraph", "table", "tile", "sem", "source", "binary"]
STAGES: tuple[Stage, ...] = ("tops", "tgraph", "table", "tile", "sem", "source", "binary")
OF_NEURON: tuple[Stage, ...] = ("tile", "sem", "source")
OF_GRAPHS: tuple[Stage, ...] = ("tops", "tgraph", "table", "source", "binary")
ARCHS = ("sm_80", "sm_90a", "sm_100a")


@click.command(name="compile")
@click.argument("input")
@click.option(
    "--target", type=click.Choice(["cuda", "host", "neuron"]), default="cuda", show_default=True, help="What it is for."
)
@click.option("--emit", type=click.Choice(STAGES), default="source", show_default=True, help="Where to stop.")
@click.option("-o", "--output", type=output_file, metavar="OUT", help="The file to write.  [default: standard output]")
@click.option("--arch", type=click.Choice(ARCHS), default="sm_90a", show_default=True, help="Of a cuda binary.")
@workers_option
@grids_option
@semaphore_options
def compile_command(
    input: str,
    target: str,
    emit: Stage,
    output: str | None,
    arch: str,
    workers: int | None,
    grids: str | None,
    kind: str,
    device: str,
    counters: str | None,
) -> None:
    """Compile INPUT to CUDA C++ or ISA text, or to a stage before.

    \b
    INPUT is an .mlir file, - for standard input, or a model.
        mpkc compile examples/mlp.mlir
        mpkc compile smollm2-135m --emit table --workers 132
        mpkc compile examples/mlp.mlir --emit binary --arch sm_100a -o mlp.cubin
    A sem.program or a tile.kernel is for the neuron target. Its stages: `tile`,
    the program with its dependencies; `sem`, with its streams beside it;
    `source`, ISA text.
        mpkc compile examples/tile/matmul.mlir --target neuron
    """
    from mpkc.dialects.diagnostics import OpError
    from mpkc.engine_program import engine_program
    from mpkc.inputs import read_input

    if emit == "binary" and output is None:
        raise UserError("error: a binary needs a file to go to: add -o OUT")
    stages = OF_NEURON if target == "neuron" else OF_GRAPHS
    if emit not in stages:
        raise UserError(f"error: --emit {emit} does not go with --target {target}: use {', '.join(stages)}")
    if target == "neuron":
        refuse_given(("workers", "grids", "arch"), "--target neuron")
        write_output(compiled_engines(read_input(input), emit, setup_of(kind, device, counters)), output)
        return
    refuse_given((*OF_SEMAPHORES, "device"), f"--target {target}")
    given = read_input(input)
    if (program := engine_program(given.module)) is not None:
        raise OpError(program, f"a {program.name} is for the neuron target, not for {target}: add --target neuron")
    write_output(compiled(given, target, emit, arch, workers, grids), output)


def compiled_engines(given: "Input", stage: Stage, setup: "Setup") -> str:
    """The stage of a multi-engine program; its remarks go to standard error."""
    from mpkc.dialects.diagnostics import OpError
    from mpkc.engine_program import engine_program
    from mpkc.engines import compiled
    from mpkc.semaphores import prepare

    program = engine_program(given.module)
    if program is None:
        raise OpError(given.module, "the neuron target takes a sem.program or a tile.kernel")
    refuse_semaphores(given.module)
    if stage == "tile":
        refuse_given(("counters",), "--emit tile, which has no semaphores")
        return printed(ModuleOp([prepare(program, setup.kind, setup.machine)]))
    found = compiled(given.module, program, setup)
    for remark in found.remarks:
        click.echo(remark, err=True)
    return printed(found.module) if stage == "sem" else found.text


def compiled(
    given: "Input", target: str, stage: Stage, arch: str, workers: int | None, grids: str | None
) -> str | bytes:
    """The stage of a program of tensor operators, or of a task graph."""
    from mpkc.pipelines import Options
    from mpkc.targets import HOST_MIN_BYTES, compile_for, cores

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
