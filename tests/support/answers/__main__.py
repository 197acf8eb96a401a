"""Write down what is said about the saved captures now, and print what is another."""

import difflib

from tests.support.answers import FOLDER, SAVED, answers, keep, kept

for name in SAVED:
    before = kept(name) if (FOLDER / f"{name}.txt.gz").exists() else []
    now = answers(name)
    print("\n".join(difflib.unified_diff(before, now, name, name, lineterm="", n=0)) if before else name)
    keep(name, now)
