"""The watch of a whole session: what `%recompiles` and the environment variables turn on."""

from __future__ import annotations

from threading import RLock

from explorer.ledger.log import from_environment
from explorer.ledger.watch import Watch

_lock = RLock()
_session: Watch | None = None


def session() -> Watch | None:
    """The session's watch; None if there is none, or if it was stopped."""
    return _session if _session is not None and _session.on else None


def start_session() -> Watch:
    """The session's watch, turned on if it is off."""
    global _session
    with _lock:
        current = session()
        if current is None:
            current = _session = Watch()
        return current


def stop_session() -> Watch | None:
    """Turn the session's watch off; what it saw stays in what is returned, None if it was off."""
    global _session
    with _lock:
        stopped, _session = session(), None
        if stopped is not None:
            stopped.stop()
        return stopped


def watch_if_requested() -> None:
    """Turn the session's watch on if the environment asks for one of its logs."""
    global _session
    event_listeners = from_environment()
    if event_listeners:
        with _lock:
            _session = Watch(event_listeners=event_listeners)
