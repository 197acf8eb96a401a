"""`python -m explorer time module:function` and `python -m explorer profile module:function`."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Callable
from typing import Any

import explorer as ex  # which loads a room where it is first used: the other verbs start without JAX
from explorer.capture.command_target import add_target, arguments_of, function_of
from explorer.files.reports import add_format, add_output, present, writable

_FILLED = "An array that is only described is random, floats normal, or of zeros if it holds whole numbers."


def add_time(verbs: Any) -> None:
    """Add the verb `time` to the command line's subparsers."""
    about = f"Say how long a function takes: as written, the first time, and once it is compiled. {_FILLED}"
    verb = verbs.add_parser("time", help="measure how long a function takes", description=about)
    add_target(verb)
    verb.add_argument("--seconds", metavar="S", type=float, help="how long to measure, about")
    verb.add_argument("--no-eager", action="store_true", help="don't time the function operation by operation")
    add_output(verb, "also write the chart as one page (.html)", [".html"])
    add_format(verb)
    verb.set_defaults(run=_time)


def add_profile(verbs: Any) -> None:
    """Add the verb `profile` to the command line's subparsers."""
    about = f"Say which source line the time of a compiled function goes to, and which instruction. {_FILLED}"
    verb = verbs.add_parser("profile", help="find the lines that a function's time goes to", description=about)
    add_target(verb)
    verb.add_argument("--runs", metavar="N", type=int, help="how many calls to record")
    verb.add_argument("--seconds", metavar="S", type=float, help="how long to record, about")
    verb.add_argument("--roofline", action="store_true", help="also say how much of the time the machine could save")
    add_output(verb, "also write the view as one page (.html)", [".html"])
    verb.add_argument("--perfetto", metavar="FILE", type=writable(), help="also write a trace for ui.perfetto.dev")
    add_format(verb)
    verb.set_defaults(run=_profile)


def _time(given: argparse.Namespace) -> int:
    timing = _measured(given, ex.time, eager=not given.no_eager, **_given_options(given, "seconds"))
    files = [timing.chart().to_html(given.output)] if given.output is not None else []
    present(given, "time", timing, lambda: _show(timing), files)
    return 0


def _profile(given: argparse.Namespace) -> int:
    try:
        measured = _measured(given, ex.profile, **_given_options(given, "runs", "seconds"))
    # An interrupted profile carries what was recorded before.
    except (KeyboardInterrupt, SystemExit) as stop:
        if (measured := getattr(stop, "result", None)) is not None:
            _write_profile(given, measured)
        raise
    _write_profile(given, measured)
    return 0


def _write_profile(given: argparse.Namespace, measured: ex.Profile) -> None:
    if given.roofline:
        measured = measured.with_peaks(ex.peaks())
    files = [measured.to_html(given.output)] if given.output is not None else []
    files += [measured.to_perfetto(given.perfetto)] if given.perfetto is not None else []
    present(given, "profile", measured, lambda: _show(measured), files)


def _measured(given: argparse.Namespace, measure: Callable[..., Any], **options: Any) -> Any:
    # The user's own output is no part of the report.
    with contextlib.redirect_stdout(sys.stderr):
        function, module = function_of(given.target)
        args, kwargs = _filled(arguments_of(function, given.arg, vars(module)))
        return measure(ex.Call(function, *args, **kwargs), **options)


def _filled(described: Any) -> Any:
    """Return the tree with an array for each description: random normal floats, and zeros of other dtypes."""
    import jax
    import jax.numpy as jnp
    import numpy as np

    random = np.random.default_rng(0)

    def filled(leaf: Any) -> Any:
        if not isinstance(leaf, jax.ShapeDtypeStruct):
            return leaf
        if not jnp.issubdtype(leaf.dtype, jnp.inexact):
            return jnp.zeros(leaf.shape, leaf.dtype)  # as an index, within any array
        return jnp.asarray(random.normal(size=leaf.shape), leaf.dtype)

    return jax.tree.map(filled, described)


def _given_options(given: argparse.Namespace, *names: str) -> dict[str, Any]:
    return {name: value for name in names if (value := getattr(given, name)) is not None}


def _show(measured: Any) -> None:
    from rich.console import Console

    Console().print(measured)
