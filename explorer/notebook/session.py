"""`%explorer`: a thin adapter over `explorer.session`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from IPython.core.magic import line_magic, magics_class, no_var_expand

from explorer.errors import ExpressionError
from explorer.notebook.shell import ShellMagics

if TYPE_CHECKING:  # `%load_ext explorer` loads nothing of what a magic gives
    from explorer.ledger.watch import Watch
    from explorer.sessions.session import Session

_ON = "What compiles is watched from here on. %recompiles off ends it."


@magics_class
class SessionMagics(ShellMagics):
    """`%explorer`."""

    def __init__(self, shell: Any) -> None:
        super().__init__(shell)
        self._started: Watch | None = None  # not what a script or %recompiles had turned on

    @no_var_expand
    @line_magic
    def explorer(self, line: str) -> Session:
        """Show one page for the session: every function that was compiled, by cost, with what there is of it.

        If nothing was watched, it starts to, and says so. `%explorer session.html` also writes the page to a file. What
        is returned is `explorer.session()`.

        Raises:
            ExpressionError: The file can't be written.
        """
        __tracebackhide__ = True
        from explorer.ledger.watch import start_session
        from explorer.sessions.session import session

        shown = session()
        if shown.ledger is None or not shown.ledger.on:
            self._started = start_session()
            print(_ON)
        path = line.strip().strip("'\"")
        if path:
            try:
                shown.save(path)
            except OSError as error:
                raise ExpressionError(f"%explorer {path}: the page can't be written: {error}.") from None
        return shown

    def stop(self) -> None:
        """Turn off what this magic turned on."""
        if self._started is not None:
            from explorer.ledger.watch import session, stop_session

            if session() is self._started:
                stop_session()
