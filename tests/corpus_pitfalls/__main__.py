"""`python -m tests.corpus_pitfalls`: the score of lint, as a table."""

from tests.corpus_pitfalls.score import outcomes, table

print(table(list(outcomes())))
