"""tops: operators on whole tensors (docs/tops.md).

An operator is one file of this folder: what it computes, how its tasks share the work, its text form for free.
"""

from xdsl.ir import Dialect

from mpkc.dialects.tops.argmax import ArgmaxPartialOp, ArgmaxReduceOp
from mpkc.dialects.tops.attention import AttentionOp
from mpkc.dialects.tops.elementwise import AddOp, MulOp, SiluMulOp
from mpkc.dialects.tops.embedding import EmbeddingOp
from mpkc.dialects.tops.linear import LinearOp
from mpkc.dialects.tops.rms_norm import RmsNormOp
from mpkc.dialects.tops.weight import WeightOp

Tops = Dialect(
    "tops",
    [
        AddOp,
        ArgmaxPartialOp,
        ArgmaxReduceOp,
        AttentionOp,
        EmbeddingOp,
        LinearOp,
        MulOp,
        RmsNormOp,
        SiluMulOp,
        WeightOp,
    ],
)
