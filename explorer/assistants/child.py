"""The process that runs one verb of the shell for an assistant: `verbs.py` starts it, with its limit of memory.

    python -m explorer.assistants.child BYTES VERB …

What anything prints goes to standard error: standard output has the report alone.
"""

from __future__ import annotations

import os
import runpy
import sys

from explorer.hardware.limits import limit_memory


def main() -> None:
    """Run the verb."""
    limit_memory(int(sys.argv[1]))
    report = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what C++ and the user's own child processes print
    sys.stdout = report
    sys.argv[:] = ["explorer", *sys.argv[2:]]
    try:
        runpy.run_module("explorer", run_name="__main__", alter_sys=True)
    finally:
        report.flush()


if __name__ == "__main__":
    main()
