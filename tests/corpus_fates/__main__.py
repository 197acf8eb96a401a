"""`python -m tests.corpus_fates [PROGRAMS]`: what became of removable operations, against XLA's dumps; 320 programs."""

import sys

from tests.corpus_fates.score import Score, scores, table

count = int(sys.argv[1]) if len(sys.argv) > 1 else 320
total = sum(scores(range(count)), Score())
print(table(total, count))
sys.exit(bool(total.wrong))
