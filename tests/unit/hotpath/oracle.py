"""What a program does, seen from outside: all that anybody could tell it by, except for the clock.

The program is made anew and run as it was written, then made anew and run hot; two accounts that are equal were told
by no part of what makes functions hot.
"""

from __future__ import annotations

import contextlib
import io
import os
import random
import traceback
import warnings
from dataclasses import dataclass, fields, is_dataclass
from types import FunctionType
from typing import Any

import jax
import numpy as np

from explorer.hotpath.hot import HotFunction, Options

_DIGITS = 4  # of results: what reassociation leaves the same in single precision


@dataclass
class Account:
    """All that a program did.

    Args:
        outcomes: Of each call: what it gave, or raised and at which line; and what its arguments were afterwards.
        printed: On both streams.
        warned: Class, text, and how often.
        left: What the program says is to be looked at, afterwards.
        states: Of the random generators and the environment.
    """

    outcomes: list[Any]
    printed: str
    warned: list[str]
    left: Any
    states: dict[str, Any]


def account_of(make, *, is_hot: bool, submit=None, settle=lambda hot: None) -> tuple[Account, HotFunction | None]:
    """Make a program and run it.

    Args:
        make: Gives the function, its calls, and what to look at afterwards.
        is_hot: Whether the function may be compiled at its second call.
        submit: What runs a compile; at once where nothing is given.
        settle: Is run after each call; who compiles in the background may wait here.
    """
    np.random.seed(1)
    random.seed(1)
    printed = io.StringIO()
    with (
        warnings.catch_warnings(record=True) as warned,
        contextlib.redirect_stdout(printed),
        contextlib.redirect_stderr(printed),
        np.errstate(all="ignore"),
    ):
        warnings.simplefilter("always")
        function, calls, left = make()
        hot = HotFunction(function, Options(1, 0.0, submit or (lambda work: work()))) if is_hot else None
        if hot is not None:
            hot.watch()
        try:
            outcomes = []
            for args, kwargs, *change in calls:
                for act in change:
                    act()
                outcomes.append(outcome(function, args, kwargs))
                settle(hot)
        finally:
            if hot is not None:
                hot.release()
        jax.effects_barrier()
        remains = described(left())
    states = {
        "numpy": described(np.random.get_state()),
        "random": described(random.getstate()),
        "environment": dict(os.environ),
    }
    said = [f"{one.category.__name__}: {one.message}" for one in warned]
    return Account(outcomes, printed.getvalue(), said, remains, states), hot


def outcome(function, args, kwargs):
    """What a call gave or raised, and its arguments after it."""
    try:
        result = function(*args, **kwargs)
    except Exception as error:
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == _file(function)]
        where = frames[-1].lineno if frames else 0
        chain = error.__cause__ is not None, error.__context__ is not None
        return type(error).__name__, str(error).splitlines()[:1], where, chain, described((args, kwargs))
    return described(result), sameness(result, (args, kwargs)), described((args, kwargs))


def _file(function: FunctionType) -> str:
    return function.__code__.co_filename


def described(value: Any, depth: int = 8) -> Any:
    """A value as something that can be compared: classes, order and all, past any `==` of its own."""
    if depth == 0:
        return "…"
    if isinstance(value, jax.Array):
        return (
            type(value).__name__,
            str(value.dtype),
            getattr(value, "weak_type", None),
            value.committed,
            numbers(value),
        )
    if isinstance(value, (np.ndarray, np.generic)):
        return type(value).__name__, str(value.dtype), numbers(value)
    if isinstance(value, dict):
        inside = [(described(key, depth - 1), described(one, depth - 1)) for key, one in value.items()]
        return type(value).__name__, inside
    if isinstance(value, (list, tuple)):
        return type(value).__name__, [described(one, depth - 1) for one in value]
    if isinstance(value, (set, frozenset)):
        return type(value).__name__, sorted(map(repr, value))
    if isinstance(value, (bool, int, float, complex, str, bytes, type(None))):
        return type(value).__name__, repr(value)
    if is_dataclass(value) and not isinstance(value, type):
        return type(value).__name__, [described(getattr(value, one.name), depth - 1) for one in fields(value)]
    if hasattr(value, "__dict__") and not callable(value):
        return type(value).__name__, described(vars(value), depth - 1)
    return type(value).__name__


def numbers(array: Any) -> Any:
    """Shape and numbers, rounded relative to the largest, as the order of sums changes the last digits."""
    if jax.dtypes.issubdtype(array.dtype, jax.dtypes.prng_key):
        array = jax.random.key_data(array)
    found = np.asarray(array)
    if np.issubdtype(found.dtype, np.complexfloating):
        return numbers(found.real.astype(np.float64)), numbers(found.imag.astype(np.float64))
    if not np.issubdtype(found.dtype, np.number) or np.issubdtype(found.dtype, np.integer):
        return found.shape, found.tolist()
    wide = found.astype(np.float64)
    largest = float(np.max(np.abs(wide[np.isfinite(wide)]), initial=0.0))
    scale = 10.0 ** np.ceil(np.log10(largest)) if largest > 0 else 1.0
    return Rounded(wide.shape, wide, scale)


class Rounded:
    """Numbers that are equal to others but for the order in which sums were added."""

    def __init__(self, shape: tuple[int, ...], values: Any, scale: float) -> None:
        self.shape, self.values, self.scale = shape, values, scale

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Rounded) or self.shape != other.shape:
            return False
        near = 10.0**-_DIGITS * max(self.scale, other.scale)
        return bool(np.allclose(self.values, other.values, rtol=0, atol=near, equal_nan=True))

    def __repr__(self) -> str:
        return f"{self.values.tolist()}"

    __hash__ = None  # pyright: ignore


def sameness(result: Any, given: Any) -> list[int]:
    """For each mutable part and array of a result, where the very same object was seen first: a caller may ask `is`."""
    seen: dict[int, int] = {}
    pattern: list[int] = []

    def visit(value: Any) -> None:
        if isinstance(value, (list, dict, jax.Array)):
            pattern.append(seen.setdefault(id(value), len(seen)))
        for part in value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ():
            visit(part)

    visit(given)
    visit(result)
    return pattern
