"""`python -m explorer VERB …`: captures, ledgers, pitfalls, timings and profiles in the terminal."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import explorer as ex
from explorer.aot.commands import add_padding
from explorer.hardware.commands import add_targets
from explorer.hotpath.commands import add_hot
from explorer.hotpath.trace_commands import add_trace, add_visualize
from explorer.ledger.commands import add_ledger, add_recompiles
from explorer.measure.commands import add_profile, add_time
from explorer.pitfalls.commands import add_lint

_WRITERS = {
    ".html": ex.Capture.to_html,
    ".svg": ex.Capture.to_svg,
    ".png": ex.Capture.to_png,
    ".capture": ex.Capture.save,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the arguments (the command line's, if none are given) say; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m explorer", description=ex.__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    _add_open(verbs)
    add_recompiles(verbs)
    add_ledger(verbs)
    add_lint(verbs)
    add_padding(verbs)
    add_time(verbs)
    add_profile(verbs)
    add_hot(verbs)
    add_trace(verbs)
    add_visualize(verbs)
    add_targets(verbs)
    given = parser.parse_args(arguments)
    try:
        return given.run(given)
    except (ex.ExplorerError, OSError) as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 1


def _add_open(verbs: Any) -> None:
    about = "Show a compiled module from anywhere (HLO, MLIR, a proto, a folder of dumps), or a saved capture."
    opened = verbs.add_parser("open", help="show a module, a dump or a saved capture", description=about)
    opened.add_argument("path", help="HLO or MLIR, as text or proto; a folder of dumps; a capture")
    opened.add_argument("--module", help="which module of a folder: the start of its files' names, or a part of it")
    opened.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        type=_writable,
        action="append",
        default=[],
        help=f"write it there instead, as its ending says: {', '.join(_WRITERS)}",
    )
    opened.set_defaults(run=_show)


def _show(given: argparse.Namespace) -> int:
    capture = _open(Path(given.path), given.module)
    for path in given.output:
        _WRITERS[path.suffix](capture, path)
        print(f"{path}: {path.stat().st_size:,} bytes")
    if not given.output:
        from rich.console import Console

        Console().print(capture)
    return 0


def _open(path: Path, module: str | None) -> ex.Capture:
    if path.is_file():
        with path.open("rb") as file:
            if file.read(8) == b"EXPLORER":
                return ex.load(path)
    return ex.open_hlo(path, module=module)


def _writable(name: str) -> Path:
    path = Path(name)
    if path.suffix not in _WRITERS:
        raise argparse.ArgumentTypeError(f"{name!r} has none of the endings {', '.join(_WRITERS)}")
    return path


if __name__ == "__main__":
    sys.exit(main())
