"""`python -m tests.corpus_memory [PROGRAM…]`: the peak by Explorer and by XLA's buffer assignment, as a table."""

import sys

from tests.corpus_memory.score import outcomes, table

print(table(list(outcomes(sys.argv[1:]))))
