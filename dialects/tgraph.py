from xdsl.ir import Dialect

TGraph = Dialect("tgraph", [])
