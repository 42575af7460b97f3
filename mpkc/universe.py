"""What mpkc adds to xDSL: found by every xDSL tool through the entry point `xdsl.universe`."""

from xdsl.universe import Universe

from mpkc.dialects import get_all_dialects
from mpkc.passes import get_all_passes

MPKC_UNIVERSE = Universe(all_dialects=get_all_dialects(), all_passes=get_all_passes())
