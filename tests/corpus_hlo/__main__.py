"""Other people's HLO, read by our reader and by XLA's own parser: each difference, and a summary.

python -m tests.corpus_hlo [--quiet] PATH…

A path is a file or a folder with `.hlo` files and C++ sources, such as a checkout of XLA. The modules of those are
compared by position: computations, instructions, opcodes, names, types, operands, what is called. The exit code is 1
if anything is lost in silence.
"""

import sys
from collections import Counter
from pathlib import Path

from explorer import open_hlo
from explorer.capture.readers.hlo import read_hlo
from explorer.errors import OpenError, UnreadableTextError
from tests.corpus_hlo.compare import differences
from tests.corpus_hlo.modules import modules
from tests.corpus_hlo.xla import parse_all

SAME, UNREAD, REFUSED, SILENT = "read alike", "listed in unread", "refused by us", "differs in silence"
FAILED, NOT_XLA = "our reader raised", "XLA refuses it"


def outcome(text, computations):
    """Which of the outcomes, and what differs."""
    try:
        graph = read_hlo(text)
    except UnreadableTextError as error:
        return (NOT_XLA if isinstance(computations, str) else REFUSED), [str(error)]
    except Exception as error:  # what the corpus is to find
        return FAILED, [repr(error)]
    if isinstance(computations, str):
        return NOT_XLA, [computations]
    differs = differences(graph, computations)
    if graph.unread:
        return UNREAD, [f"unread: {graph.unread}", *differs]
    return (SILENT if differs else SAME), differs


def shown(text):
    """The text as it is opened: printed again by XLA where people spelled it otherwise."""
    try:
        return open_hlo(text).stages[-1].text
    except OpenError:
        return text


def main():
    quiet = "--quiet" in sys.argv
    paths = (Path(arg) for arg in sys.argv[1:] if not arg.startswith("-"))
    found = [(place, shown(text)) for place, text in modules(paths)]
    counts = Counter()
    for (place, text), computations in zip(found, parse_all(text for _, text in found), strict=True):
        what, differs = outcome(text, computations)
        counts[what] += 1
        if what not in (SAME, NOT_XLA):
            print(f"{what}: {place}")
            print("".join(f"  {difference}\n" for difference in differs[:8]))
            if not quiet:
                print(text)
                print(_printed(computations))
    print(
        f"{len(found):,} modules, {sum(place.partition(':')[0].endswith('.hlo') for place, _ in found):,} of .hlo files"
    )
    for what in (SAME, UNREAD, REFUSED, SILENT, FAILED, NOT_XLA):
        print(f"{counts[what]:7,}  {what}")
    sys.exit(bool(counts[SILENT] or counts[REFUSED] or counts[FAILED]))


def _printed(computations):
    """What XLA read, as lines."""
    if isinstance(computations, str):
        return computations
    lines = []
    for computation in computations.values():
        lines.append(f"{'ENTRY ' * computation.is_entry}{computation.name}")
        for i, one in enumerate(computation.instructions):
            operands = ", ".join(computation.instructions[operand].name for operand in one.operands)
            lines.append(
                f"  {i:4}  {'ROOT ' * one.is_root}{one.name} = {one.type} {one.op}({operands}) {one.called or ''}"
            )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
