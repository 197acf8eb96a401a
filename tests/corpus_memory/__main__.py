"""`python -m tests.corpus_memory [PROGRAM…] [--target v5e]`: the peak by Explorer and by XLA's buffer assignment."""

import argparse

from tests.corpus_memory.score import outcomes, table
from tests.corpus_memory.targets import outcomes_for

parser = argparse.ArgumentParser(prog="python -m tests.corpus_memory", description=__doc__)
parser.add_argument("programs", nargs="*", help="all if none is given; of a target one part of their names")
parser.add_argument("--target", default="", help="hardware that isn't here, with the programs of tests.corpus_targets")
given = parser.parse_args()
if given.target:
    print(table(list(outcomes_for(given.target, *given.programs[:1]))))
else:
    print(table(list(outcomes(given.programs))))
