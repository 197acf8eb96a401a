"""Functions that are computed on padded arrays, at every size, with poison in the padding, against the plain ones."""
