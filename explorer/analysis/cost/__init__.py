"""FLOPs, bytes and time of instructions, kernels and source lines."""
