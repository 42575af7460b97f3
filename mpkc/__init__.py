"""mpkc: tensor programs to one persistent mega-kernel, multi-engine kernels to barrier-free code."""

__version__ = "0.1.0"
