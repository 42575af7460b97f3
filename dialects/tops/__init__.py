"""tops: tensor operators on whole tensors."""

from xdsl.ir import Dialect

Tops = Dialect("tops", [])
