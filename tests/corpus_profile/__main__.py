"""`python -m tests.corpus_profile [MODEL… | libraries]`: the hottest line by ablation and by profile, as a table."""

import sys

from tests.corpus_profile.ablation import LIBRARIES
from tests.corpus_profile.score import outcomes, table

names = [name for name in sys.argv[1:] if not name.startswith("-")]
found = []
for one in outcomes(LIBRARIES if names == ["libraries"] else names):
    found.append(one)
    print(table([one]).splitlines()[1], flush=True)
print(table(found))
if "-v" in sys.argv:
    for one in found:
        print(f"\n{one.model}\n  line  ms without  ms given")
        for line in sorted({*one.gains, *one.attributed}):
            gain = f"{one.gains[line] * 1e3:10.2f}" if line in one.gains else " " * 10
            print(f"  {line:>4}  {gain}  {one.attributed.get(line, 0.0) * 1e3:8.2f}")
