"""From the output back to Python: a button asks for a rewrite, which is proven when it is asked for."""

from __future__ import annotations

import contextlib
import io
from collections import deque
from dataclasses import asdict
from typing import Any
from uuid import uuid4
from weakref import ref

from explorer.errors import ExplorerError, ViewError
from explorer.model.findings import Findings, Fix
from explorer.view.cell import shown
from explorer.view.session import in_kernel, ipython_shell, open_wire

_KEPT = 8
# The last ones that were displayed: findings know the arguments of the function, which may be large.
_displayed: deque[Findings] = deque(maxlen=_KEPT)


def connect(findings: Findings) -> str:
    """The name that the page knows findings by; with a wire under it, where there is something to ask for."""
    name = uuid4().hex[:16]
    if in_kernel() and any(findings.can_fix(finding) and not finding.fix.code for finding in findings):
        _displayed.append(findings)
        reference = ref(findings)

        def answer(wire: Any, message: Any, _: object) -> None:
            wire.send(_answer(reference(), message))

        wire = open_wire(name)
        wire.on_msg(answer)
        shown.add(name, wire.close)
    return name


def _answer(findings: Findings | None, message: Any) -> dict[str, Any]:
    """What the page gets for its message `{"ask": "fix", "of": number}`: the fix, or why there is none."""
    request: dict[str, Any] = message if isinstance(message, dict) else {}  # pyright: ignore[reportUnknownVariableType]
    number = request.get("of")
    reply: dict[str, Any] = {"of": number}
    if findings is None:
        return reply | {"failed": "These findings are of an earlier time: run the cell again."}
    if request.get("ask") != "fix" or not isinstance(number, int) or not 0 <= number < len(findings):
        return reply | {"failed": "There is no such finding."}
    try:
        # What the user's code prints in the trace that proves it is no part of any cell.
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            fix = findings.fix(number)
    except ExplorerError as error:
        return reply | {"failed": str(error)}
    except Exception as error:
        return reply | {"failed": f"{type(error).__name__}: {error}"}
    if not fix.code:
        return reply | {"failed": "No rewrite could be proven here: it is for you to apply the cure."}
    return reply | asdict(fix)


def apply_fix(fix: Fix) -> None:
    """Write a rewritten function into a new cell."""
    if not fix.code:
        raise ViewError("no rewrite of this is certain.\n  Hint: Fix.text says what to do.")
    write_next(fix.code)


def write_next(code: str) -> None:
    """Put code into a new cell below the one that runs; in a terminal, into the next prompt.

    Raises:
        ViewError: No IPython runs this.
    """
    shell = ipython_shell()
    if shell is None:
        raise ViewError("there is no notebook here to write a cell into.\n  Hint: Fix.code is the text.")
    shell.set_next_input(code.rstrip("\n"), replace=False)
