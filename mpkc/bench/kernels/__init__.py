"""The programs of barrier-free, table 2."""

from mpkc.bench.kernels import adamw, addmany, flash_attention, matmul, moe, rmsnorm
from mpkc.bench.kernels.kernel import Kernel

KERNELS: dict[str, Kernel] = {
    kernel.name: kernel
    for kernel in (
        addmany.KERNEL,
        adamw.KERNEL,
        flash_attention.KERNEL,
        rmsnorm.KERNEL,
        matmul.KERNEL,
        matmul.UNROLLED_K,
        *moe.KERNELS,
    )
}

__all__ = ["KERNELS", "Kernel"]
