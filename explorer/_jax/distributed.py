"""The processes of `jax.distributed`: the index of this one, and the key-value store and barriers that they share.

Nothing public gives access to JAX's service; without it processes meet in files alone.
"""

from __future__ import annotations

from typing import Any

try:
    from jax._src import distributed as _distributed  # pyright: ignore

    _state: Any = vars(_distributed)["global_state"]
    for _name in ("client", "process_id", "num_processes"):
        getattr(_state, _name)
except (ImportError, AttributeError, KeyError):  # pragma: no cover - then there is one process, as far as we know
    _state = None


class Processes:
    """The processes of a session: the `index` of this one, from 0, and their `count`."""

    def __init__(self, client: Any, index: int, count: int) -> None:
        self._client, self.index, self.count = client, index, count

    def write(self, key: str, value: bytes) -> None:
        self._client.key_value_set_bytes(key, value)

    def read(self, key: str, seconds: float) -> bytes:
        """Return the value of a key once a process has written it; raise TimeoutError after `seconds` without it."""
        try:
            return self._client.blocking_key_value_get_bytes(key, max(1, int(1000 * seconds)))
        except Exception as error:  # JAX's own runtime error; the timeout is a word in its message
            if "DEADLINE_EXCEEDED" in str(error):
                raise TimeoutError(f"no process wrote {key} within {seconds:g} s") from error
            raise

    def wait(self, name: str, seconds: float) -> None:
        """Wait until every process has called this with the same `name`; raise TimeoutError after `seconds`.

        Each name works once.
        """
        try:
            self._client.wait_at_barrier(name, max(1, int(1000 * seconds)))
        except Exception as error:
            if "DEADLINE_EXCEEDED" in str(error):
                raise TimeoutError(f"not every process reached {name} within {seconds:g} s") from error
            raise


def processes() -> Processes | None:
    """Return the processes of this session, with what they share; None for a single one, or where JAX doesn't say."""
    client = getattr(_state, "client", None)
    count = int(getattr(_state, "num_processes", 0) or 0)
    return Processes(client, int(_state.process_id), count) if client is not None and count > 1 else None
