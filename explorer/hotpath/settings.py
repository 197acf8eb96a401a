"""When and how functions are compiled by themselves, as a person says it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

from explorer.errors import OptionError
from explorer.model.text import did_you_mean

Mode = Literal["default", "reduce-overhead", "max-autotune"]
_THRESHOLDS: dict[Mode, int] = {"default": 10, "reduce-overhead": 3, "max-autotune": 10}  # calls


@dataclass(frozen=True, slots=True)
class Settings:
    """When and how functions are compiled.

    Args:
        threshold: From how many calls on.
        seconds: And from how much eager time on, all calls together.
        mode: How much is done for a function.
        background: Whether compiles run beside the program.
        is_forced: Whether a compiled copy stays though it isn't faster.
    """

    threshold: int
    seconds: float
    mode: Mode
    background: bool
    is_forced: bool = False


def checked(threshold: Any, seconds: Any, mode: Any, background: Any, *, is_forced: bool = False) -> Settings:
    """Settings of those values.

    Raises:
        OptionError: One is out of range.
    """
    if mode not in get_args(Mode):
        raise OptionError(
            f"mode of auto_compile() is {mode!r}; allowed are {', '.join(map(repr, get_args(Mode)))}."
            + did_you_mean(f"{mode}", get_args(Mode))
        )
    if threshold is None:
        threshold = _THRESHOLDS[mode]
    if type(threshold) is not int or threshold < 1:
        raise OptionError(f"threshold of auto_compile() is {threshold!r}; allowed is a number of calls from 1 on.")
    if type(seconds) not in (int, float) or not 0 <= seconds < float("inf"):
        raise OptionError(f"seconds of auto_compile() is {seconds!r}; allowed is a time from 0 on.")
    if type(background) is not bool:
        raise OptionError(f"background of auto_compile() is {background!r}; allowed are True and False.")
    return Settings(threshold, float(seconds), mode, background, is_forced)
