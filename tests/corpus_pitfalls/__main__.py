"""`python -m tests.corpus_pitfalls [group …]`: the score of lint, as a table."""

import sys

from tests.corpus_pitfalls.score import outcomes, table

print(table(list(outcomes(*sys.argv[1:]))))
