"""All functions of the corpus, by families."""

from tests.corpus_padding.functions import numpy_names

CASES = [*numpy_names.CASES]
