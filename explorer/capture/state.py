"""What functions with captured state tell those who look at them."""

from __future__ import annotations

from typing import Any


class HoldsState:
    """A function that reads and writes state besides its arguments: JAX gets it as one, anew in each call."""

    @property
    def captured(self) -> tuple[Any, ...]:
        """The containers that hold it."""
        raise NotImplementedError
