"""The processes of `jax.distributed`: which this one is, and what they have in common to write to and to wait at.

The service that JAX's processes start by keeps keys with values for all of them, and barriers. Nothing public gives it
out; without it processes meet in files alone.
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
    """What the processes of a session share.

    Attributes:
        index: Which this process is, from 0.
        count: How many there are.
    """

    def __init__(self, client: Any, index: int, count: int) -> None:
        self._client, self.index, self.count = client, index, count

    def write(self, key: str, value: bytes) -> None:
        """Give a key a value, once."""
        self._client.key_value_set_bytes(key, value)

    def read(self, key: str, seconds: float) -> bytes:
        """The value of a key, as soon as some process has written it.

        Raises:
            TimeoutError: None did.
        """
        try:
            return self._client.blocking_key_value_get_bytes(key, max(1, int(1000 * seconds)))
        except Exception as error:  # JAX's own runtime error; that the time is over is a word in it
            if "DEADLINE_EXCEEDED" in str(error):
                raise TimeoutError(f"no process wrote {key} in {seconds:g} s") from error
            raise

    def wait(self, name: str, seconds: float) -> None:
        """Wait until every process is here; each name serves once.

        Raises:
            TimeoutError: Some process didn't come.
        """
        try:
            self._client.wait_at_barrier(name, max(1, int(1000 * seconds)))
        except Exception as error:
            if "DEADLINE_EXCEEDED" in str(error):
                raise TimeoutError(f"not every process came to {name} in {seconds:g} s") from error
            raise


def processes() -> Processes | None:
    """What this process shares with others; None where it is the only one, or JAX doesn't say."""
    client = getattr(_state, "client", None)
    count = int(getattr(_state, "num_processes", 0) or 0)
    return Processes(client, int(_state.process_id), count) if client is not None and count > 1 else None
