"""The commands `open`, `explore` and `diff` of `python -m explorer`."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import explorer as ex  # which loads a room where it is first used: the other verbs start without JAX
from explorer.capture.command_target import add_arguments, add_target, arguments_of, function_of
from explorer.files.disk import read_start
from explorer.files.reports import add_format, add_output, present
from explorer.model.text import list_names

_WRITERS = {
    ".html": ex.Capture.to_html,
    ".svg": ex.Capture.to_svg,
    ".png": ex.Capture.to_png,
    ".capture": ex.Capture.save,
}


def add_open(verbs: Any) -> None:
    about = "Show a compiled module from anywhere (HLO, MLIR, a proto, a folder of dumps), or a saved capture."
    verb = verbs.add_parser("open", help="show a module, a dump or a saved capture", description=about)
    verb.add_argument("path", help="HLO or MLIR, as text or proto; a folder of dumps; a capture")
    verb.add_argument("--module", help="which module of a folder: the start of its files' names, or a part of it")
    _add_output(verb)
    add_format(verb)
    verb.set_defaults(run=_open)


def add_explore(verbs: Any) -> None:
    about = (
        "Trace, lower and compile a function once, without running it, and show its kernels, linked to its lines. "
        "With --target, for hardware that needn't be here."
    )
    verb = verbs.add_parser("explore", help="show what the compiler makes of a function", description=about)
    add_target(verb)
    verb.add_argument("--target", dest="hardware", metavar="HARDWARE", help="h100, 8xh100, v5e:4x4, …: see `targets`")
    verb.add_argument("--passes", action="store_true", help="also record the compiler's passes")
    _add_output(verb)
    add_format(verb)
    verb.set_defaults(run=_explore)


def add_diff(verbs: Any) -> None:
    about = "Compare the compiled programs of two functions, or of saved captures."
    verb = verbs.add_parser("diff", help="compare two functions, or saved captures", description=about)
    for name in ("a", "b"):
        verb.add_argument(name, metavar=name.upper(), help="a saved capture, or MODULE:FUNCTION, as for `explore`")
    add_arguments(verb)
    add_output(verb, "also write the view as one page (.html)", [".html"])
    add_format(verb)
    verb.set_defaults(run=_diff)


def _explore(given: argparse.Namespace) -> int:
    try:
        capture = _explored(given.target, given.arg, given.hardware)
    except ex.errors.ExploreError as error:
        _keep(given.output, error.capture)
        raise
    if given.passes:
        _ = capture.passes
    return _show(given, capture)


def _explored(target: str, arguments: list[str], hardware: str | None = None) -> ex.Capture:
    # Output of the user's code at import and trace is not part of the report.
    with contextlib.redirect_stdout(sys.stderr):
        function, module = function_of(target)
        args, kwargs = arguments_of(function, arguments, vars(module))
        return ex.explore(ex.Call(function, *args, **kwargs), target=hardware)


def _diff(given: argparse.Namespace) -> int:
    a, b = (ex.load(side) if _is_capture(Path(side)) else _explored(side, given.arg) for side in (given.a, given.b))
    diff = ex.diff(a, b)
    files = [diff.to_html(given.output)] if given.output is not None else []
    present(given, "diff", diff, lambda: _print(diff), files)
    return 0


def _add_output(verb: Any) -> None:
    add_output(
        verb, f"write to this file instead, in the format of its ending: {', '.join(_WRITERS)}", _WRITERS, several=True
    )


def _show(given: argparse.Namespace, capture: ex.Capture) -> int:
    for path in given.output:
        _WRITERS[path.suffix](capture, path)
    show = (lambda: None) if given.output else (lambda: _print(capture))
    present(given, "explore", capture, show, given.output)
    return 0


def _keep(paths: Sequence[Path], capture: ex.Capture) -> None:
    """Write the stages before a failed step to each path, and print that to stderr; do nothing without stages."""
    if capture.stages:
        for path in paths:
            _WRITERS[path.suffix](capture, path)
            names = list_names([stage.name for stage in capture.stages])
            print(f"{path}: the stages before it, {names}", file=sys.stderr)


def _print(value: Any) -> None:
    from rich.console import Console

    Console().print(value)


def _open(given: argparse.Namespace) -> int:
    path = Path(given.path)
    return _show(given, ex.load(path) if _is_capture(path) else ex.open_hlo(path, module=given.module))


def _is_capture(path: Path) -> bool:
    if not path.is_file():
        return False
    return read_start(path, 8, "a capture") == b"EXPLORER"
