"""`mpkc passes` and `mpkc devices`: what there is."""

import inspect

import click

from mpkc.cli.common import json_option, print_json, print_table, table


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
    shown = table("pass", "what it does, and its options", wrap=("what it does, and its options",))
    for name, options, summary in rows:
        defaults = " ".join(f"{option.name}={option.default_value}" for option in options)
        shown.add_row(name, f"{summary}\n{{{defaults}}}" if options else summary)
    print_table(shown)


@click.command()
@json_option
def devices(as_json: bool) -> None:
    """List the machine descriptions that `--device` takes.

    \b
        mpkc devices
    """
    from mpkc.runtime.machine import machines

    found = machines()
    if as_json:
        return print_json({"devices": [machine.to_json() for machine in found]})
    shown = table("device", "engines", "what it is", wrap=("engines", "what it is"))
    for machine in found:
        shown.add_row(machine.name, ", ".join(machine.engines) or "any name", machine.description)
    print_table(shown)
