"""Decode with a tiny model's mega-kernel: as functions for tests, and as a script that a sanitizer's process runs."""

import json
import sys
from pathlib import Path

from mpkc.dialects.tops.function import only_function
from mpkc.inputs import decoding_input
from mpkc.models.source import open_model
from mpkc.models.weights import program_weights
from mpkc.pipelines import Launch, Options, run_passes, task_graph
from mpkc.runtime.cuda.emit import compile_program
from mpkc.runtime.cuda.image import Request
from mpkc.runtime.errors import LaunchFailure
from mpkc.runtime.host.run import HostOptions, HostRun
from mpkc.runtime.reference.decode import ReferenceDecoder
from mpkc.targets import decode_inputs

PROMPT = (5, 7, 300)
NEW = 6  # with a page of 4 positions, the text crosses two borders of pages
PAGE_SIZE = 4


class TinyDecoder:
    """The decoding step of a tiny model, partitioned down to its smallest operators, for one launch or many."""

    def __init__(self, path: Path, workers: int = 4, launch: Launch = "mixed"):
        model = open_model(str(path))
        self.given = decoding_input(model, context=len(PROMPT) + NEW, page_size=PAGE_SIZE)
        func = only_function(self.given.module)
        self.weights = program_weights(model, func)
        self.reference = ReferenceDecoder(func, self.weights)
        options = Options(workers, min_bytes=0, launch=launch)
        run_passes(self.given.module, task_graph(options), self.given.ctx)
        self.program = compile_program(self.given.module)

    def expected(self) -> list[int]:
        return self.reference.generate(PROMPT, NEW)

    def run(self, options: HostOptions) -> HostRun:
        return HostRun(self.program, self.weights, decode_inputs(self.given), options)

    def tokens(self, options: HostOptions) -> list[int]:
        """The new tokens of one launch."""
        return list(self.run(options).decode(Request(PROMPT, NEW)))[len(PROMPT) - 1 :]


def main(path: str, sanitizer: str, fault: int, seeds: int) -> None:
    decoder = TinyDecoder(Path(path))
    outcomes: list[object] = []
    for seed in range(seeds):
        defines = {"MPK_FAULT": fault} if fault else {}
        options = HostOptions("lanes", 4, 1, seed, 120.0, sanitizer, defines)  # type: ignore[arg-type]
        try:
            outcomes.append(decoder.tokens(options))
        except LaunchFailure as err:
            outcomes.append(str(err))
    print(json.dumps({"expected": decoder.expected(), "outcomes": outcomes}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
