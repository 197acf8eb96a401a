"""Comparison of two captures: matched nodes, changed text, kernels, and figures."""
