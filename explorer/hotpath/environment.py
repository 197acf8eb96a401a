"""What the environment turns on for a whole program, from the import of Explorer on.

| variable | |
|---|---|
| `EXPLORER_AUTO_COMPILE=1` | eager functions that are called often are compiled, as by `explorer.auto_compile()` |
| `EXPLORER_COMPILE=1` | every eligible function, at its first call, though it isn't faster |
| `EXPLORER_COMPILE_THRESHOLD=20` | from how many calls on |
| `EXPLORER_CONFIG=signals.yaml` | what `explorer.signal` does |
"""

from __future__ import annotations

import atexit
import os
from functools import cache

from explorer.errors import OptionError
from explorer.files.signals import read_signals
from explorer.hotpath.auto import AutoCompile, auto_compile
from explorer.hotpath.settings import Settings, checked
from explorer.model.results.hot_paths import SignalSettings
from explorer.model.text import did_you_mean

AUTO, ALL, THRESHOLD = "EXPLORER_AUTO_COMPILE", "EXPLORER_COMPILE", "EXPLORER_COMPILE_THRESHOLD"
CONFIG = "EXPLORER_CONFIG"
_ON, _OFF = ("1", "true", "yes", "on"), ("", "0", "false", "no", "off")


def is_turned_on(name: str) -> bool:
    """Whether a variable is set to yes.

    Raises:
        OptionError: To neither yes nor no.
    """
    value = os.environ.get(name, "")
    if value.strip().lower() not in (*_ON, *_OFF):
        allowed = ", ".join(_ON + _OFF[1:])
        raise OptionError(f"{name} is {value!r}; allowed are {allowed}.{did_you_mean(value, (*_ON, *_OFF[1:]))}")
    return value.strip().lower() in _ON


def threshold() -> int | None:
    """From how many calls on, if the environment says so.

    Raises:
        OptionError: It is no such number.
    """
    value = os.environ.get(THRESHOLD, "").strip()
    if not value:
        return None
    if not value.isascii() or not value.isdigit() or int(value) < 1:
        raise OptionError(f"{THRESHOLD} is {value!r}; allowed is a number of calls from 1 on.")
    return int(value)


def requested() -> AutoCompile | None:
    """Hot paths as the environment wants them, not started yet; None where it doesn't.

    Raises:
        OptionError: A variable has a value that it can't have.
    """
    at, is_auto, is_all = threshold(), is_turned_on(AUTO), is_turned_on(ALL)
    if is_all:
        return AutoCompile(forced())
    return auto_compile(threshold=at) if is_auto else None


def forced() -> Settings:
    """Compile at the first call, and wait for it."""
    return checked(1, 0.0, "default", False, is_forced=True)


@cache
def configured() -> dict[str, SignalSettings]:
    """What the file of signals says that the environment names; nothing where it names none.

    Raises:
        SignalsError: It has a mistake.
    """
    path = os.environ.get(CONFIG, "").strip()
    return read_signals(path) if path else {}


def start_if_requested() -> AutoCompile | None:
    """Turn hot paths on for the rest of the program, if the environment says so, and read the file of signals."""
    configured()
    hot = requested()
    if hot is not None:
        hot.start()
        atexit.register(hot.stop)
    return hot
