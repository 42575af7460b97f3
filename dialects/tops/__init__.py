"""tops: operators on whole tensors (docs/tops.md).

An operator is one file of this folder: what it computes, how its tasks share the work, its text form for free.
"""

from xdsl.ir import Dialect

from mpkc.dialects.tops.argmax import ArgmaxPartialOp, ArgmaxReduceOp
from mpkc.dialects.tops.attention import AttentionOp
from mpkc.dialects.tops.elementwise import AddOp, MulOp, SiluMulOp
from mpkc.dialects.tops.embedding import EmbeddingOp
from mpkc.dialects.tops.expert_linear import ExpertLinearOp
from mpkc.dialects.tops.expert_sum import ExpertSumOp
from mpkc.dialects.tops.linear import LinearOp
from mpkc.dialects.tops.matmul import MatmulOp
from mpkc.dialects.tops.reduce import ReduceOp
from mpkc.dialects.tops.rms_norm import RmsNormOp
from mpkc.dialects.tops.rope import RopeOp
from mpkc.dialects.tops.slice import SliceOp
from mpkc.dialects.tops.softmax import SoftmaxOp
from mpkc.dialects.tops.topk_softmax import TopkSoftmaxOp
from mpkc.dialects.tops.transpose import TransposeOp
from mpkc.dialects.tops.weight import WeightOp

Tops = Dialect(
    "tops",
    [
        AddOp,
        ArgmaxPartialOp,
        ArgmaxReduceOp,
        AttentionOp,
        EmbeddingOp,
        ExpertLinearOp,
        ExpertSumOp,
        LinearOp,
        MatmulOp,
        MulOp,
        ReduceOp,
        RmsNormOp,
        RopeOp,
        SiluMulOp,
        SliceOp,
        SoftmaxOp,
        TopkSoftmaxOp,
        TransposeOp,
        WeightOp,
    ],
)
