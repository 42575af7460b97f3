"""A language model's decoding step for every batch size up to a maximum."""

from collections.abc import Callable

from xdsl.dialects.builtin import ModuleOp

from mpkc.inputs import PAGE_SIZE
from mpkc.models.config import ModelConfig
from mpkc.models.decode import decode_step
from mpkc.parsing import own_context
from mpkc.pipelines import Options, run_passes, task_graph
from mpkc.runtime.cuda.emit import compile_programs
from mpkc.runtime.cuda.family import Family, batch_sizes, scratch_pages


def decode_modules(
    config: ModelConfig, most: int, context: int | None = None, page_size: int = PAGE_SIZE
) -> dict[int, ModuleOp]:
    """Decoding steps, by their rows, for each power of two up to the first that has room for `most` rows.

    All have the same caches: pages for `most` rows of `context` positions, and those that rows of padding write to.

    Raises:
        ModelError: where one of the numbers does not fit the model.
    """
    context = config.context if context is None else context
    pages = most * -(-context // page_size) + scratch_pages(most)
    return {rows: decode_step(config, rows, context, page_size, cache_pages=pages) for rows in batch_sizes(most)}


def decode_family(
    config: ModelConfig,
    most: int,
    options: Options,
    context: int | None = None,
    page_size: int = PAGE_SIZE,
    told: Callable[[str], None] | None = None,
) -> Family:
    """The mega-kernels of `decode_modules`, of one source.

    Args:
        told: is called with the name of each graph and pass before it runs.

    Raises:
        ModelError: where one of the numbers does not fit the model.
        OpError: where a pass or the target refuses the program.
    """
    modules = decode_modules(config, most, context, page_size)
    for rows, module in modules.items():
        run_passes(
            module,
            task_graph(options),
            own_context(),
            told and (lambda name, rows=rows, told=told: told(f"batch {rows}: {name}")),
        )
    return Family(dict(zip(modules, compile_programs(list(modules.values())), strict=True)), most)
