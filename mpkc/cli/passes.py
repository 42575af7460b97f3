"""`mpkc passes` and `mpkc devices`: what there is."""

import inspect

import click
from rich.console import Console
from rich.table import Table

from mpkc.cli.common import json_option, print_json
from mpkc.cli.errors import told_in_one_line


@click.command()
@json_option
def passes(as_json: bool) -> None:
    """List mpkc's passes, their options, and what they do.

    \b
        mpkc passes
        mpkc opt program.mlir -p 'tgraph-partition{workers=4},tgraph-build'
    """
    from xdsl.passes import get_pass_option_infos

    from mpkc.passes import get_all_passes

    rows = [
        (name, get_pass_option_infos(factory()), (inspect.getdoc(factory()) or "").splitlines()[0])
        for name, factory in get_all_passes().items()
    ]
    if as_json:
        listed = [
            {"name": name, "options": {o.name: o.default_value for o in options}, "summary": summary}
            for name, options, summary in rows
        ]
        return print_json({"passes": listed})
    table = Table(box=None, pad_edge=False)
    for heading in ("pass", "options", "what it does"):
        table.add_column(heading)
    for name, options, summary in rows:
        table.add_row(name, ", ".join(f"{option.name}={option.default_value}" for option in options), summary)
    Console().print(table)


@click.command()
@json_option
def devices(as_json: bool) -> None:
    """List the machine descriptions that `--device` takes.

    \b
        mpkc devices
    """
    with told_in_one_line():
        from mpkc.runtime.machine import machines

        found = machines()
    if as_json:
        return print_json({"devices": [machine.to_json() for machine in found]})
    table = Table(box=None, pad_edge=False)
    for heading in ("device", "engines", "what it is"):
        table.add_column(heading)
    for machine in found:
        table.add_row(machine.name, ", ".join(machine.engines) or "any name", machine.description)
    Console().print(table)
