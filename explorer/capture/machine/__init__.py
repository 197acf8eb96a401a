"""Code that compilers write below HLO: the code of kernels, read from a dump."""
