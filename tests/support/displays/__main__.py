"""Write down what the saved results look like now."""

from tests.support.displays import FOLDER, SAVED, looks

for name in SAVED:
    for ending, text in looks(name).items():
        (FOLDER / f"{name}.{ending}").write_text(text, encoding="utf-8")
