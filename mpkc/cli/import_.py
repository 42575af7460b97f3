"""`mpkc import`: a model's decoding step as MLIR."""

import click

from mpkc.cli.common import output_file, write_output
from mpkc.cli.errors import UserError
from mpkc.inputs import PAGE_SIZE


@click.command(name="import")
@click.argument("source")
@click.option("-o", "--output", type=output_file, metavar="OUT.MLIR", help="The file.  [default: standard output]")
@click.option(
    "--rows", type=click.IntRange(1), metavar="N", default=1, show_default=True, help="Requests that one step decodes."
)
@click.option("--context", type=click.IntRange(1), metavar="N", help="Positions a cache holds.  [default: the model's]")
@click.option(
    "--page-size",
    type=click.IntRange(1),
    metavar="N",
    default=PAGE_SIZE,
    show_default=True,
    help="Positions in a page.",
)
@click.option("--layers", type=click.IntRange(1), metavar="N", help="Layers from the first on.  [default: all]")
def import_command(
    source: str, output: str | None, rows: int, context: int | None, page_size: int, layers: int | None
) -> None:
    """Write a model's decoding step as MLIR.

    \b
    SOURCE is a built-in name, a .gguf file, a checkpoint directory or its
    config.json.
        mpkc import smollm2-135m -o step.mlir
        mpkc import smollm2-135m --layers 2 | mpkc opt - -p tgraph-partition
    """
    from mpkc.cli.compile import printed
    from mpkc.inputs import decoding_input
    from mpkc.models.source import open_model

    if source.endswith(".mlir") or source == "-":
        raise UserError(f"error: {source} is MLIR already: import reads models")
    given = decoding_input(open_model(source), rows, context, page_size, layers)
    write_output(printed(given.module), output)
