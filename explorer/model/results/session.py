"""Sessions: what was compiled, function by function, and the values that public functions returned."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import wraps
from itertools import count
from math import isfinite, nan
from typing import Any, ParamSpec, TypeVar

from explorer.errors import UnknownNameError
from explorer.model.declared import Displayable, declared
from explorer.model.results.rows import Rows
from explorer.model.text import did_you_mean
from explorer.model.units import count_text


@dataclass(frozen=True, slots=True)
class SessionItem:
    """One result of a function that can be opened.

    Args:
        kind: `capture`, `ledger`, `findings`, `timing`, `profile`, `memory`, `roofline`, `what if`, `executable`,
            `hot paths`.
        key: Argument of `Session.open`.
        text: Text of the button: `capture (x: f32[8])`, `2 findings`.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> def halved(x):
        ...     return x / 2
        >>> capture = explorer.explore(halved, jnp.ones(8))
        >>> [(item.kind, item.text) for item in explorer.session()["halved"].items]
        [('capture', 'capture (x: f32[8])')]
    """

    kind: str
    key: str
    text: str


@dataclass(frozen=True, slots=True)
class SessionRow:
    """Row of one function in a session report.

    Args:
        name: Name of the function.
        file, line: Position of its definition; empty and 0 if unknown.
        place: Readable position: `cell [4], line 3`.
        basis: Source of the row: `watched`, `explored` (a capture or an executable), or `before` (found in JAX's
            caches, compiled before watching).
        compiles: Number of compiles; for `before`, number of argument types.
        recompiles: Number of repeated traces or compiles among them.
        trace, lower, compile: Seconds; NaN if unknown.
        leaf: Leaf that changed most often: `x.shape[0]`; empty if none did.
        why: Reason for the recompiles, in words; empty without any.
        cure: Change that would stop them; empty if unknown.
        run: Seconds of a call in the latest measurement; else NaN.
        memory: Bytes of arguments, outputs and temporaries of the latest program; else NaN.
        errors, warnings, notes: Number of findings by severity.
        hot: State in hot paths, `compiled` or `eager`; empty if they were off.
        items: Results that can be opened.

    Example:
        >>> import explorer
        >>> row = explorer.types.SessionRow("step", compiles=2, recompiles=1, trace=0.25, lower=0.25, compile=0.5)
        >>> row.seconds, row.findings
        (1.0, 0)
    """

    name: str
    file: str = ""
    line: int = 0
    place: str = ""
    basis: str = "watched"
    compiles: int = 0
    recompiles: int = 0
    trace: float = nan
    lower: float = nan
    compile: float = nan
    leaf: str = ""
    why: str = ""
    cure: str = ""
    run: float = nan
    memory: float = nan
    errors: int = 0
    warnings: int = 0
    notes: int = 0
    hot: str = ""
    items: tuple[SessionItem, ...] = ()

    @property
    def seconds(self) -> float:
        """Return the seconds of trace, lower and compile together; NaN if one is unknown."""
        return self.trace + self.lower + self.compile

    @property
    def findings(self) -> int:
        return self.errors + self.warnings + self.notes

    def __repr__(self) -> str:
        again = f", {self.recompiles} again" if self.recompiles else ""
        return f"SessionRow({self.name}: {count_text(self.compiles, 'compile')}{again})"


@dataclass(frozen=True)
class SessionReport(Rows[SessionRow], Displayable):
    """Snapshot of all compiled functions, by cost.

    Args:
        rows: Functions, most expensive first; functions of unknown cost last.
        operations: Number of single operations that JAX compiled outside of any `jit`.
        operation_seconds: Compile time of these operations.
        watching: State of watching: `now`, `once` (ended), or `never`.
        notes: Notes on missing information.

    Example:
        >>> import explorer as ex
        >>> report = ex.types.SessionReport((ex.types.SessionRow("step", compiles=2, trace=0.1, lower=0.1,
        ...     compile=0.3),))
        >>> print(report.summary[0])
        1 function compiled twice, 500 ms.
        >>> report["step"].compiles
        2
    """

    rows: tuple[SessionRow, ...] = ()
    operations: int = 0
    operation_seconds: float = 0.0
    watching: str = "never"
    notes: tuple[str, ...] = ()

    @property
    @declared
    def summary(self) -> tuple[str, ...]:
        """Return sentences about cost, recompiles with reasons, and unknowns; names are in backticks."""
        ...

    @property
    def seconds(self) -> float:
        """Return the seconds of all compiles of known duration, those of single operations included."""
        return self.operation_seconds + sum(row.seconds for row in self.rows if isfinite(row.seconds))

    def __getitem__(self, name: str) -> SessionRow:
        """Return the row of a function; the most expensive row if several have this name.

        Raises:
            UnknownNameError: No compiled function has this name.
        """
        row = next((row for row in self.rows if row.name == name), None)
        if row is None:
            names = [row.name for row in self.rows]
            raise UnknownNameError(f"no function {name!r} was compiled here." + did_you_mean(name, names))
        return row

    def __repr__(self) -> str:
        functions = count_text(len(self.rows), "function")
        compiles = count_text(sum(row.compiles for row in self.rows), "compile")
        return f"SessionReport({functions}, {compiles}, {sum(row.recompiles for row in self.rows)} again)"


P = ParamSpec("P")
T = TypeVar("T")

_numbers = count(1)
# Weak, so that a session keeps no value alive that the user has dropped.
_values: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()


def remember(value: T) -> T:
    """List `value` in `remembered_values` and return it. A value without weak references is not listed."""
    # Some classes allow no weak references.
    with suppress(TypeError):
        _values[next(_numbers)] = value
    return value


def remembered(function: Callable[P, T]) -> Callable[P, T]:
    """Return `function` wrapped so that each result is listed in `remembered_values`."""

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        __tracebackhide__ = True
        return remember(function(*args, **kwargs))

    return call


def remembered_values() -> list[tuple[int, Any]]:
    """Return (number, value) of each listed value that still exists, earliest first; numbers count from 1."""
    return sorted(_values.items(), key=lambda item: item[0])
