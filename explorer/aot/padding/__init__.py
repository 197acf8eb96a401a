"""Serving of varying sizes: the padding decision, the padded server, and its report."""
