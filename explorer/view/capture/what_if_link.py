"""What-if switches of the view: a page requests a change, a thread compiles it and sends the result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import isfinite
from threading import Event, Lock, Thread
from typing import Any

from explorer.model.capture import Capture
from explorer.model.results.sweep import Variant, WhatIf

Send = Callable[..., None]

_NAMES = ("donate", "remat", "precision", "dtype")
_SECONDS = 0.3  # of running each of the two variants


class CancelledError(Exception):
    """The user cancelled the trial."""


class WhatIfTrials:
    """Trials that the pages of one capture request, one at a time: two at once would disturb each other's times."""

    def __init__(self, capture: Capture) -> None:
        self._capture = capture
        self._running = Lock()
        self._cancelled = Event()

    def receive(self, message: Mapping[str, Any], send: Send) -> None:
        """Start or cancel a trial: `{"ask": "what-if", "of": 3, "change": {…}}` or `{"ask": "cancel"}`."""
        if message.get("ask") == "cancel":
            self._cancelled.set()
        else:
            Thread(target=self._run, args=(message, send), daemon=True).start()

    def _run(self, message: Mapping[str, Any], send: Send) -> None:
        reply: dict[str, Any] = {"what_if": message.get("of")}
        if not self._running.acquire(blocking=False):
            send({**reply, "failed": "Another one is being compiled: cancel it, or wait."})
            return
        # An earlier cancel was for an earlier trial.
        self._cancelled.clear()

        def notify(fraction: float, text: str) -> None:
            # A trial stops at its next step: a compile can't be interrupted.
            if self._cancelled.is_set():
                raise CancelledError
            send({**reply, "fraction": fraction, "doing": text})

        try:
            notify(0.0, "compiling it as it is")
            tried = self._capture.what_if(
                **change_of(message.get("change")), seconds=_SECONDS, progress=notify
            )  # fmt: skip
            notify(1.0, "")
            row = tried.variants[0]
            buffers: list[bytes] = []
            if row.capture is not None and row.capture.stages:
                buffers.append(row.capture.wire)
            send({**reply, "tried": summarize(tried, row)}, buffers)
        except CancelledError:
            send({**reply, "failed": "cancelled"})
        except Exception as error:  # the page that requested the trial shows the error
            send({**reply, "failed": str(error).strip() or type(error).__name__})
        finally:
            self._running.release()


def change_of(asked: Any) -> dict[str, Any]:
    """Return the keywords of `Capture.what_if` for a page's request; `what_if` checks the values."""
    change: dict[str, Any] = dict(asked) if isinstance(asked, dict) else {}  # pyright: ignore[reportUnknownArgumentType]
    # Untrusted input: only these names may become arguments of `what_if`.
    wanted = {name: change[name] for name in _NAMES if isinstance(change.get(name), (str, bool)) and change[name]}
    if change.get("grad") is True:
        wanted["grad"] = True
    options = _options(str(change.get("options") or ""))
    return {**wanted, "options": options} if options else wanted


def _options(text: str) -> dict[str, Any]:
    """Return the compiler options in a text such as `xla_a=true, xla_b=3`."""
    parts = (part.partition("=") for part in text.split(","))
    return {name.strip(): _scalar(value.strip()) for name, _, value in parts if name.strip()}


def _scalar(text: str) -> bool | int | float | str:
    """Return the value of an option as a bool, int, float or str."""
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def summarize(tried: WhatIf, row: Variant) -> dict[str, Any]:
    """Return what a page shows of a variant.

    `pairs` has (plain, changed) of seconds, memory, compile and kernels, with None for unknown figures. `ratio` is the
    ratio of times with the ends of its interval, or None.
    """
    plain = tried.plain
    pairs = {
        "seconds": (plain.seconds, row.seconds),
        "memory": (plain.peak, row.peak),
        "compile": (plain.compile_seconds, row.compile_seconds),
        "kernels": (plain.kernels, row.kernels),
    }
    ratio = row.ratio
    return {
        "name": row.name,
        "error": row.error,
        "verdict": row.verdict(plain),
        "notes": [*row.notes, *tried.notes],
        "pairs": {name: [_number(value) for value in pair] for name, pair in pairs.items()},
        "ratio": None if ratio is None else [ratio.ratio, ratio.low, ratio.high],
        "difference": str(row.difference or ""),
    }


def _number(value: float | None) -> float | None:
    return value if value is not None and isfinite(value) else None
