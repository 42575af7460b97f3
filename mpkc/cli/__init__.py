"""The `mpkc` command: one file a subcommand."""

import click

from mpkc import __version__
from mpkc.cli.bench import bench
from mpkc.cli.compile import compile_command
from mpkc.cli.errors import Tool
from mpkc.cli.generate import generate
from mpkc.cli.graph import graph
from mpkc.cli.import_ import import_command
from mpkc.cli.passes import devices, passes
from mpkc.cli.run import run
from mpkc.cli.simulate import simulate
from mpkc.cli.stats import stats
from mpkc.cli.verify import verify


@click.group("mpkc", cls=Tool, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="mpkc")
def main() -> None:
    """Compile tensor programs to one mega-kernel, and multi-engine kernels to barrier-free code.

    \b
        mpkc generate smollm2-135m --prompt "The capital of France is"
        mpkc compile examples/mlp.mlir --target cuda
        mpkc COMMAND --help
    """


@click.command(context_settings={"ignore_unknown_options": True, "help_option_names": []})
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
def opt(args: tuple[str, ...]) -> None:
    """Run passes on MLIR, as xdsl-opt does."""
    from mpkc.opt import run_opt

    run_opt(list(args), "mpkc opt")


for command in (
    generate,
    run,
    compile_command,
    import_command,
    opt,
    graph,
    stats,
    verify,
    simulate,
    bench,
    passes,
    devices,
):
    main.add_command(command)
