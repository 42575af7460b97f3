from xdsl.ir import Dialect

Sem = Dialect("sem", [])
