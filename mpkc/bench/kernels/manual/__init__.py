"""The semaphores of the kernels, placed by hand; `mpkc.bench.kernels.placement` tells how."""
