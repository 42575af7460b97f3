"""The part of `mpkc stats` that counts the graphs of a model's batches."""

from mpkc.batches import decode_modules
from mpkc.cli.common import print_json, print_table, table
from mpkc.cli.errors import UserError
from mpkc.inputs import Input, is_model
from mpkc.models.source import open_model
from mpkc.parsing import own_context
from mpkc.runtime.cuda.footprint import size_text
from mpkc.stats import memory_of, stats_of
from mpkc.taskgraph import linear_task_graph


def print_batches(spec: str, workers: int, grids: str | None, most: int, as_json: bool) -> None:
    """Count the graphs of a model's batches, one a row, and what they need together."""
    if not is_model(spec):
        raise UserError("error: --max-batch needs a model: a program has the rows that it was written for")
    model = open_model(spec)
    graphs = {
        rows: linear_task_graph(Input(module, own_context(), model), workers, grids)
        for rows, module in decode_modules(model.config, most).items()
    }
    counts = {rows: stats_of(graph, workers) for rows, graph in graphs.items()}
    together = memory_of(graphs.values(), workers)
    if as_json:
        memory = {"weight_bytes": together.weight_bytes, "cache_bytes": together.cache_bytes}
        memory |= {"activation_bytes": together.activation_bytes, "peak_bytes": together.peak_bytes}
        return print_json({"graphs": [{"batch": rows} | each.to_json() for rows, each in counts.items()]} | memory)
    headings = ("batch", "tasks", "events", "pairs", "empty tasks", "activations", "peak")
    rows_table = table(*headings, right=headings)
    for rows, each in counts.items():
        numbers = (each.tasks, each.events, each.pairs, each.empty_tasks)
        sizes = (size_text(each.activation_bytes), size_text(each.peak_bytes))
        rows_table.add_row(str(rows), *(f"{number:,}" for number in numbers), *sizes)
    rows_table.add_row("all", "", "", "", "", size_text(together.activation_bytes), size_text(together.peak_bytes))
    print_table(rows_table)
