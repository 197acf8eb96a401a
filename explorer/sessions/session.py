"""session(): one page for everything that was compiled."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from os import PathLike
from pathlib import Path
from typing import Any

from explorer.errors import NotRecordedError, UnknownNameError
from explorer.ledger.watch import Watch
from explorer.model.declared import Displayable
from explorer.model.events.event import Event
from explorer.model.events.family_counts import FamilyKey, family_key
from explorer.model.events.ledger import Ledger
from explorer.model.results.session import SessionReport, SessionRow, remembered_values
from explorer.sessions.collect import collect, families, watched_ledger
from explorer.view.sessions.link import display_live


class Session(Displayable):
    """Everything compiled in this process so far, read whenever it is shown.

    In a notebook it is a page that is updated while cells run: each function by cost, with its captures, recompiles,
    findings, times and memory, which open by a click. It holds only weak references: a capture that the user drops
    disappears here too.

    Example:
        >>> import explorer as ex, jax, jax.numpy as jnp
        >>> @jax.jit
        ... def doubled(x):
        ...     return x * 2
        >>> with ex.watch() as ledger:
        ...     _ = doubled(jnp.ones(2)), doubled(jnp.ones(3))
        >>> row = ex.session()["doubled"]
        >>> row.compiles, row.recompiles, row.leaf
        (2, 1, 'x.shape[0]')
    """

    def report(self) -> SessionReport:
        """Return the session as a value, as of now."""
        return collect()

    @property
    def rows(self) -> tuple[SessionRow, ...]:
        """Return a row for each function, the most expensive first."""
        return self.report().rows

    @property
    def summary(self) -> tuple[str, ...]:
        """Return sentences about the cost of compiling, recompiles and their reasons, and unknown figures."""
        return self.report().summary

    @property
    def ledger(self) -> Watch | None:
        """Return the ledger that the session reads; None if nothing is watched."""
        return watched_ledger()

    def __getitem__(self, name: str) -> SessionRow:
        """Return the row of a function, the most expensive of several with this name.

        Raises:
            UnknownNameError: No function has this name.
        """
        return self.report()[name]

    def open(self, key: str) -> Any:
        """Return the object behind an item of a row: a capture, a ledger of one function, findings, a profile, ….

        Args:
            key: `SessionItem.key`.

        Raises:
            UnknownNameError: There is no such item, or the user has dropped it since.
            NotRecordedError: The function's compile is not available any more.
        """
        kind, _, what = key.partition(":")
        if kind in ("ledger", "compiled"):
            return self._of_ledger(kind, what)
        value = dict(remembered_values()).get(int(what)) if what.isdigit() else None
        if value is None:
            raise UnknownNameError(f"{key!r} is not there any more: nothing holds it.\n  Hint: run its cell again.")
        return value.findings if kind == "passive" else value

    def _of_ledger(self, kind: str, what: str) -> Any:
        ledger = watched_ledger()
        keys = {} if ledger is None else {text: counts.key for text, counts in families(ledger)}
        family = keys.get(what)
        if ledger is None or family is None:
            raise UnknownNameError("nothing is watched any more, and the ledger is gone.\n  Hint: %explorer watches.")
        events = [event for event in ledger.events if family_key(event) == family]
        if kind == "ledger":
            part = Ledger(None, storm=ledger.storm)
            part.add(tuple(events))
            return part
        return ledger.capture(_last_compile(events, family))

    def unseen(self) -> AbstractContextManager[None]:
        """Return a context in which the thread's compiles are not recorded."""
        ledger = watched_ledger()
        return nullcontext() if ledger is None else ledger.unseen()

    def save(self, path: str | PathLike[str]) -> Path:
        """Write a page that opens without a kernel, with captures and ledgers, and return its path.

        Raises:
            OSError: The file can't be written.

        Example:
            >>> import explorer, jax.numpy as jnp
            >>> from pathlib import Path
            >>> from tempfile import TemporaryDirectory
            >>> capture = explorer.explore(jnp.cosh, jnp.ones(8))
            >>> with TemporaryDirectory() as folder:
            ...     page = Path(folder, "session.html")
            ...     _ = explorer.session().save(page)
            ...     page.stat().st_size > 1000
            True
        """
        return self.to_html(path)

    def _ipython_display_(self) -> None:
        display_live(self)

    def __repr__(self) -> str:
        return f"Session({repr(self.report()).partition('(')[2]}"


def _last_compile(events: list[Event], family: FamilyKey) -> Event:
    compiled = [event for event in events if event.kind in ("compile", "cache-hit")]
    if not compiled:
        raise NotRecordedError(
            f"no compile of {family[1]} is in the ledger any more.\n  Hint: watch(limit=…) keeps more."
        )
    return compiled[-1]


_session = Session()


def session() -> Session:
    """Return the session: every compiled function with its captures, recompiles, findings, times and memory.

    It reads the ledger if compiles are watched (`%explorer`, `%recompiles`, `ex.watch()`), all captures, executables,
    measurements and hot paths still alive, and JAX's own caches, which don't know the cost of a compile. It starts
    nothing itself.

    Returns:
        The session, which shows itself: `.rows`, `.summary`, `.save("session.html")`, `.to_text()`.

    Example:
        >>> import explorer as ex, jax.numpy as jnp
        >>> def tripled(x):
        ...     return x * 3
        >>> capture = ex.explore(tripled, jnp.ones(4))
        >>> ex.session()["tripled"].items[0].text
        'capture (x: f32[4])'
    """
    return _session
