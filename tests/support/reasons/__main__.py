"""Write down why the saved calls compiled as it is explained now, and print what is another."""

import difflib

from tests.support.reasons import FOLDER, explained, keep, kept

before = kept() if (FOLDER / "reasons.txt.gz").exists() else []
now = explained()
print("\n".join(difflib.unified_diff(before, now, "kept", "now", lineterm="", n=0)))
keep(now)
