from xdsl.ir import Dialect

Tile = Dialect("tile", [])
