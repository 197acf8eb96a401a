"""Write down what the saved results look like now, and print what is another."""

import difflib

from tests.support.displays import SAVED, keep, kept, looks

for name in SAVED:
    for ending, text in looks(name).items():
        try:
            before = kept(name, ending)
        except FileNotFoundError:
            print("new:", name, ending)
        else:
            pair = before.splitlines(), text.splitlines()
            print("\n".join(difflib.unified_diff(*pair, f"{name}.{ending}", "now", lineterm="", n=0)), end="")
        keep(name, ending, text)
