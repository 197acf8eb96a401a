"""Each module that is read otherwise than MLIR reads it, and a summary; the exit code is 1 if any is lost in silence.

python -m tests.corpus_mlir [--quiet] PATH…

A path is a file or a folder with `.mlir` files, such as a checkout of openxla/stablehlo.
"""

import re
import sys
from collections import Counter
from pathlib import Path

from explorer import open_hlo
from explorer.capture.readers.stablehlo import read_stablehlo
from explorer.errors import OpenError, UnreadableTextError
from tests.corpus_mlir.compare import differences
from tests.corpus_mlir.mlir import parse_all

_SPLIT = re.compile(r"^// -----.*$", re.M)
_IS_MODULE = re.compile(r'func|module|stablehlo|"')
_CHECKS = re.compile(r"^ *check\..*$", re.M)  # of a dialect that jaxlib doesn't have; nothing reads their results
LARGEST = 400_000  # bytes: what is larger are constants
SAME, UNREAD, SILENT, REFUSED, FAILED = "read alike", "listed in unread", "differs in silence", "refused", "raised"
EMPTY, NOT_MLIR = "without an operation", "MLIR refuses it"


def modules(paths):
    """Each distinct module under the paths with its place."""
    seen = set()
    for path in paths:
        for file in [path] if path.is_file() else sorted(path.rglob("*.mlir")):
            if file.stat().st_size > LARGEST:
                continue
            content, start = _CHECKS.sub("", file.read_text(errors="replace")), 0
            for end in [*(split.start() for split in _SPLIT.finditer(content)), len(content)]:
                text, line = content[start:end], content.count("\n", 0, start) + 1
                start = end
                if text not in seen and _IS_MODULE.search(text):
                    seen.add(text)
                    yield f"{file}:{line}", text


def outcome(text, operations):
    """Which of the outcomes, and what differs."""
    is_refused = isinstance(operations, str)
    try:
        graph = read_stablehlo(text)
    except UnreadableTextError as error:
        if is_refused or all(each.depth == 0 and each.name != "parameter" for each in operations):
            return (NOT_MLIR if is_refused else EMPTY), []
        return (REFUSED if any("." in each.name[4:] for each in operations) else EMPTY), [str(error)]
    except Exception as error:  # what the corpus is to find
        return FAILED, [repr(error)]
    if is_refused:
        return NOT_MLIR, [operations]
    differs = differences(text, graph, operations)
    if graph.unread:
        lines = text.split("\n")
        return UNREAD, [*(f"unread: {lines[number].strip()}" for number in graph.unread), *differs]
    return (SILENT if differs else SAME), differs


def shown(text):
    """The text as it is opened: printed again by MLIR where people spelled it otherwise."""
    try:
        return open_hlo(text).stages[-1].text
    except OpenError:
        return text


def main():
    paths = (Path(arg) for arg in sys.argv[1:] if not arg.startswith("-"))
    found = [(place, shown(text)) for place, text in modules(paths)]
    counts = Counter()
    for (place, text), operations in zip(found, parse_all(text for _, text in found), strict=True):
        what, differs = outcome(text, operations)
        counts[what] += 1
        if what not in (SAME, NOT_MLIR, EMPTY):
            print(f"{what}: {place}")
            print("".join(f"  {difference}\n" for difference in differs[:6]))
            if "--quiet" not in sys.argv:
                print(text)
    print(f"{len(found):,} modules")
    for what in (SAME, UNREAD, SILENT, REFUSED, FAILED, EMPTY, NOT_MLIR):
        print(f"{counts[what]:7,}  {what}")
    sys.exit(bool(counts[SILENT] or counts[REFUSED] or counts[FAILED]))


if __name__ == "__main__":
    main()
