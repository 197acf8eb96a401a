"""All functions of the corpus, by families."""

from tests.corpus_padding.functions import arrays, libraries, loops, losses, networks, numerics, numpy_names

MODULES = (numpy_names, arrays, numerics, loops, losses, networks, libraries)
CASES = [case for module in MODULES for case in module.CASES]
