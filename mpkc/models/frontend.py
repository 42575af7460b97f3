"""Models as input of every xDSL tool: `mpkc opt model.gguf`, `xdsl-opt -f 'gguf{layers=2}' model.gguf`."""

import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.frontend import Frontend

from mpkc.models.decode import decode_step
from mpkc.models.gguf_model import GgufModel


@dataclass(frozen=True)
class GgufFrontend(Frontend):
    """The decoding step of the model in a GGUF file.

    Attributes:
        rows: requests that one step decodes.
        context: positions that a cache holds; the model's own where it is not given.
        page_size: positions in a page of the cache.
        layers: layers from the first on; all where it is not given.
    """

    name = "gguf"

    rows: int = 1
    context: int | None = None
    page_size: int = 64
    layers: int | None = None

    def parse(self, ctx: Context, input: IO[bytes], input_name: str) -> ModuleOp:
        """Raises ModelError where the file is damaged, or a number does not fit the model."""
        if Path(input_name).is_file():
            config = GgufModel(Path(input_name)).config
        else:
            with tempfile.NamedTemporaryFile(suffix=".gguf") as file:  # its header is read by seeking
                shutil.copyfileobj(input, file)
                file.flush()
                config = GgufModel(Path(file.name)).config
        return decode_step(config, self.rows, self.context, self.page_size, self.layers)
