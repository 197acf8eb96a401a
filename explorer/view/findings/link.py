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
from explorer.model.findings.findings import Findings
from explorer.view import live

__all__ = ["connect", "write_next"]

_KEPT = 8
# The last ones that were displayed: findings know the arguments of the function, which may be large.
_shown: deque[Findings] = deque(maxlen=_KEPT)


def connect(findings: Findings) -> str:
    """The name that the page knows findings by; with a wire under it, where there is something to ask for."""
    name = uuid4().hex[:16]
    if live.in_kernel() and any(findings.can_fix(one) and not one.fix.code for one in findings):
        _shown.append(findings)
        known = ref(findings)

        def answer(wire: Any, said: Any, _: object) -> None:
            wire.send(_answer(known(), said))

        live.made_wire(name).on_msg(answer)
    return name


def _answer(findings: Findings | None, said: Any) -> dict[str, Any]:
    asked: dict[str, Any] = said if isinstance(said, dict) else {}  # pyright: ignore[reportUnknownVariableType]
    number = asked.get("of")
    told: dict[str, Any] = {"of": number}
    if findings is None:
        return told | {"failed": "These findings are of an earlier time: run the cell again."}
    if asked.get("ask") != "fix" or not isinstance(number, int) or not 0 <= number < len(findings):
        return told | {"failed": "There is no such finding."}
    try:
        # What the user's code prints in the trace that proves it is no part of any cell.
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            fix = findings.fix(number)
    except ExplorerError as error:
        return told | {"failed": str(error)}
    except Exception as error:
        return told | {"failed": f"{type(error).__name__}: {error}"}
    if not fix.code:
        return told | {"failed": "No rewrite could be proven here: it is for you to apply the cure."}
    return told | asdict(fix)


def write_next(code: str) -> None:
    """Put code into a new cell below the one that runs; in a terminal, into the next prompt.

    Raises:
        ViewError: No IPython runs this.
    """
    shell = live.shell()
    if shell is None:
        raise ViewError("there is no notebook here to write a cell into.\n  Hint: Fix.code is the text.")
    shell.set_next_input(code.rstrip("\n"), replace=False)
