"""The `mpkc` command: one file a subcommand."""

import click

from mpkc import __version__
from mpkc.cli.bench import bench
from mpkc.cli.compile import compile_command
from mpkc.cli.errors import told_in_one_line
from mpkc.cli.generate import generate
from mpkc.cli.graph import graph
from mpkc.cli.import_ import import_command
from mpkc.cli.passes import devices, passes
from mpkc.cli.run import run
from mpkc.cli.stats import stats


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="mpkc")
def main() -> None:
    """Compile tensor programs to one mega-kernel, and multi-engine kernels to barrier-free code."""


@main.command(context_settings={"ignore_unknown_options": True, "help_option_names": []})
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
def opt(args: tuple[str, ...]) -> None:
    """Run passes on MLIR; takes the arguments of `mpkc-opt` and xdsl-opt."""
    from mpkc.opt import MpkcOpt

    with told_in_one_line():
        MpkcOpt(description="mpkc modular optimizer driver", args=list(args)).run()


for command in (bench, compile_command, devices, generate, graph, import_command, passes, run, stats):
    main.add_command(command)
