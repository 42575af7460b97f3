"""Runtimes of mpkc: reference interpreters, CUDA, its CPU twins, machines. Import as `mpkc.runtime`."""

if __name__ != "mpkc.runtime":
    raise ImportError("this package is mpkc.runtime")
