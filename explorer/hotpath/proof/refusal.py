"""Why a function isn't compiled unasked."""

from __future__ import annotations

import traceback
from dataclasses import dataclass

import jax

from explorer.model.stage import is_library_file


@dataclass(frozen=True, slots=True)
class Refusal:
    """What can't be proven of a function, and where.

    Args:
        reason: A sentence without its full stop.
        file: Of the line.
        line: Its number, from 1; 0 where there is none.
        cure: What would make it provable; empty where nobody knows.
    """

    reason: str
    file: str = ""
    line: int = 0
    cure: str = ""


class NotProven(Exception):
    """The proof ends here."""

    def __init__(self, reason: str, cure: str = "", file: str = "", line: int = 0) -> None:
        super().__init__(reason)
        self.refusal = Refusal(reason, file, line, cure)


def refusal_of(error: Exception) -> Refusal:
    """Why a trace or a compiled call raised, with the user's line."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not is_library_file(frame.filename)]
    file, line = (frames[-1].filename, frames[-1].lineno or 0) if frames else ("", 0)
    if isinstance(error, jax.errors.TracerBoolConversionError):
        return Refusal("it decides by the value of an array", file, line, "jnp.where chooses without reading")
    if isinstance(error, (jax.errors.ConcretizationTypeError, jax.errors.TracerArrayConversionError)):
        return Refusal("it reads the value of an array", file, line, "read it outside of the function")
    text = str(error).splitlines()[0] if str(error) else ""
    return Refusal(f"compiled it raises {type(error).__name__}: {text}", file, line)
