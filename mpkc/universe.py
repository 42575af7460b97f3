"""What mpkc adds to xDSL: found by every xDSL tool through the entry point `xdsl.universe`."""

from xdsl.universe import Universe
from xdsl.utils.frontend import Frontend
from xdsl.utils.target import Target

from mpkc.dialects import get_all_dialects
from mpkc.passes import get_all_passes


def get_cuda_target() -> type[Target]:
    """The target `mpk-cuda`."""
    from mpkc.runtime.cuda.emit import CudaTarget

    return CudaTarget


def get_gguf_frontend() -> type[Frontend]:
    """The front end `gguf`, which is also a file's ending."""
    from mpkc.models.frontend import GgufFrontend

    return GgufFrontend


MPKC_UNIVERSE = Universe(
    all_dialects=get_all_dialects(),
    all_passes=get_all_passes(),
    all_targets={"mpk-cuda": get_cuda_target},
    all_frontends={"gguf": get_gguf_frontend},
)
