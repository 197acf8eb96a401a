"""`python -m explorer open FILE` and `… explore module:function`: a capture in the terminal, or as a file."""

from __future__ import annotations

import argparse
import contextlib
import sys
from pathlib import Path
from typing import Any

import explorer as ex  # which loads a room where it is first used: the other verbs start without JAX
from explorer.capture.command_target import add_target, arguments_of, function_of
from explorer.files.output_option import add_output

_WRITERS = {
    ".html": ex.Capture.to_html,
    ".svg": ex.Capture.to_svg,
    ".png": ex.Capture.to_png,
    ".capture": ex.Capture.save,
}


def add_open(verbs: Any) -> None:
    """Add `open` to the command line."""
    about = "Show a compiled module from anywhere (HLO, MLIR, a proto, a folder of dumps), or a saved capture."
    verb = verbs.add_parser("open", help="show a module, a dump or a saved capture", description=about)
    verb.add_argument("path", help="HLO or MLIR, as text or proto; a folder of dumps; a capture")
    verb.add_argument("--module", help="which module of a folder: the start of its files' names, or a part of it")
    _add_output(verb)
    verb.set_defaults(run=_open)


def add_explore(verbs: Any) -> None:
    """Add `explore` to the command line."""
    about = (
        "Trace, lower and compile a function once, run nothing, and show what became of it: its kernels, linked to its "
        "lines. With --target, for hardware that needn't be here."
    )
    verb = verbs.add_parser("explore", help="show what the compiler makes of a function", description=about)
    add_target(verb)
    verb.add_argument("--target", dest="hardware", metavar="HARDWARE", help="h100, 8xh100, v5e:4x4, …: see `targets`")
    verb.add_argument("--passes", action="store_true", help="also record the compiler's passes")
    _add_output(verb)
    verb.set_defaults(run=_explore)


def _explore(given: argparse.Namespace) -> int:
    # What the user's code prints while it is imported and traced is no part of the report.
    with contextlib.redirect_stdout(sys.stderr):
        function, module = function_of(given.target)
        args, kwargs = arguments_of(function, given.arg, vars(module))
        capture = ex.explore(ex.Call(function, *args, **kwargs), target=given.hardware)
        if given.passes:
            _ = capture.passes
    return _show(capture, given.output)


def _add_output(verb: Any) -> None:
    add_output(verb, f"write it there instead, as its ending says: {', '.join(_WRITERS)}", _WRITERS, several=True)


def _show(capture: ex.Capture, outputs: list[Path]) -> int:
    for path in outputs:
        _WRITERS[path.suffix](capture, path)
        print(f"{path}: {path.stat().st_size:,} bytes")
    if not outputs:
        from rich.console import Console

        Console().print(capture)
    return 0


def _open(given: argparse.Namespace) -> int:
    path = Path(given.path)
    return _show(ex.load(path) if _is_capture(path) else ex.open_hlo(path, module=given.module), given.output)


def _is_capture(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(8) == b"EXPLORER"
