"""`mpkc-opt`: xdsl-opt whose operations know where they were written, and whose errors say it."""

import time
from typing import IO

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass, PassPipeline
from xdsl.printer import Printer
from xdsl.xdsl_opt_main import xDSLOptMain

from mpkc.dialects.diagnostics import verify
from mpkc.parsing import LocatedParser, decoded


class MpkcOpt(xDSLOptMain):
    """xDSL's driver with mpkc's parser and verifier."""

    def parse_chunk(self, chunk: IO[bytes], file_extension: str, start_offset: int = 0) -> ModuleOp | None:
        if (self.args.frontend or file_extension) != "mlir":
            return super().parse_chunk(chunk, file_extension, start_offset)
        name = self.get_input_name()
        parser = LocatedParser(self.ctx, decoded(chunk.read(), name), name, start_offset)
        return parser.parse_module(not self.args.no_implicit_module)

    def setup_pipeline(self) -> None:
        started = time.perf_counter()

        def between(previous: ModulePass | None, module: ModuleOp, following: ModulePass | None) -> None:
            nonlocal started
            if self.args.time_passes and previous is not None:
                print(f"Pass {previous.name} took {time.perf_counter() - started} seconds")
            if not self.args.disable_verify:
                verify(module)
            if self.args.print_between_passes and previous and following:
                print(f"IR after {previous.name}:")
                Printer().print_op(module)
                print("\n\n")
            started = time.perf_counter()

        self.pipeline = PassPipeline.parse_spec(self.available_passes, self.args.passes, between)


def main(args: list[str] | None = None) -> None:
    """Run `mpkc-opt` with `args`; what a user can get wrong is told in one message, exit code 2."""
    from mpkc.cli.errors import told_in_one_line

    with told_in_one_line():
        MpkcOpt(description="mpkc modular optimizer driver", args=args).run()


if __name__ == "__main__":
    main()
