"""session(): one page for everything that was compiled, with what there is of each function to look at."""

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
    """What was compiled in this process so far; it is read anew whenever somebody looks.

    In a notebook it is a page that keeps up while cells run: each function by cost, with its captures, its recompiles,
    findings, times and memory, each to be opened by a click. It keeps nothing alive: a capture that the user drops is
    gone from here too.

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
        """All of it as a value, as it is by now."""
        return collect()

    @property
    def rows(self) -> tuple[SessionRow, ...]:
        """A row for each function, the most expensive first."""
        return self.report().rows

    @property
    def summary(self) -> tuple[str, ...]:
        """What compiling cost, what was compiled again and why, and what isn't known: sentences."""
        return self.report().summary

    @property
    def ledger(self) -> Watch | None:
        """The ledger that this reads; None where nothing is watched."""
        return watched_ledger()

    def __getitem__(self, name: str) -> SessionRow:
        """The row of a function; of several of one name the most expensive.

        Raises:
            UnknownNameError: None is called so.
        """
        return self.report()[name]

    def open(self, key: str) -> Any:
        """What an item of a row stands for: a capture, a ledger of one function, findings, a profile, ….

        Args:
            key: `SessionItem.key`.

        Raises:
            UnknownNameError: There is no such item, or the user has dropped it since.
            NotRecordedError: What a function compiled can't be had again.
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
        """While this lasts, what the thread compiles is Explorer's own."""
        ledger = watched_ledger()
        return nullcontext() if ledger is None else ledger.unseen()

    def save(self, path: str | PathLike[str]) -> Path:
        """Write it as one page that opens without a kernel, captures and ledgers in it, and return its path.

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
    """What was compiled in this session: every function with its captures, recompiles, findings, times and memory.

    It reads what there is: the ledger, where what compiles is watched (`%explorer`, `%recompiles`, `ex.watch()`), the
    captures, executables, measurements and hot paths that are still held, and what JAX's own caches tell of functions
    that had compiled before; their cost isn't known. It starts nothing itself.

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
