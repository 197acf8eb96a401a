"""`python -m explorer trace script.py` and `python -m explorer visualize LOG`: what a script runs, over time."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from explorer.capture.script import read_script, run_script
from explorer.files.instruction_log import read_timeline
from explorer.files.reports import add_format, add_output, is_json, present, script_output
from explorer.hotpath.commands import add_script
from explorer.model.results.hot_paths import OperationTimeline

_WRITERS = {
    ".png": OperationTimeline.to_png,
    ".svg": OperationTimeline.to_svg,
    ".html": OperationTimeline.to_html,
}


def add_trace(verbs: Any) -> None:
    """Add the verb that records what a script runs."""
    about = (
        "Run a script as Python would, and log each operation that it runs for some seconds, from the first one on; "
        "afterwards it goes on without a log. With EXPLORER_AUTO_COMPILE=1 its hot functions run compiled."
    )
    verb = verbs.add_parser("trace", help="log the operations that a script runs", description=about)
    verb.add_argument("-s", "--seconds", metavar="S", type=_seconds, default=5.0, help="how long; 5 otherwise")
    verb.add_argument("--dir", metavar="DIR", type=Path, default=Path(), help="where to: DIR/trace_SCRIPT.log")
    add_format(verb)
    add_script(verb)
    verb.set_defaults(run=_trace)


def add_visualize(verbs: Any) -> None:
    """Add the verb that draws a log."""
    about = "Draw an instruction log over time: operations one by one, compiled functions, and compiles."
    verb = verbs.add_parser("visualize", help="draw an instruction log", description=about)
    verb.add_argument("log", metavar="LOG", help="what trace wrote, or EXPLORER_INSTRUCTION_LOG")
    about_output = f"where to: {', '.join(_WRITERS)}; else it is only told in a sentence"
    add_output(verb, about_output, _WRITERS, several=True)
    add_format(verb)
    verb.set_defaults(run=_visualize)


def _trace(given: argparse.Namespace) -> int:
    from explorer.files.instruction_log import open_log
    from explorer.hotpath.auto import active
    from explorer.hotpath.logs import LogListener

    text = None if given.module else read_script(given.script)
    given.dir.mkdir(parents=True, exist_ok=True)
    path = _unused(given.dir.absolute(), Path(given.script).stem if text is not None else given.script)
    log = open_log(path)
    listener = LogListener(log, given.seconds)
    hot = active()
    if hot is not None:
        hot.listen(listener)
    listener.start()
    try:
        with script_output(given):
            return run_script(given.script, given.arguments, text)
    finally:
        listener.stop()
        log.close()
        timeline = read_timeline(path) if log.number else OperationTimeline(path.name, 0.0, 0.0)
        headline = timeline.headline if log.number else "no operation ran"
        present(
            given,
            "timeline",
            timeline,
            lambda: print(f"{path}: {headline}", file=sys.stderr),
            [path] if is_json(given) and path.is_file() else [],
            summary=[headline],
        )


def _visualize(given: argparse.Namespace) -> int:
    timeline = read_timeline(given.log)
    for path in given.output:
        _WRITERS[path.suffix](timeline, path)
    show = (lambda: None) if given.output else (lambda: print(f"{timeline.name}: {timeline.headline}"))
    present(given, "timeline", timeline, show, given.output)
    return 0


def _unused(folder: Path, name: str) -> Path:
    """A file of the folder that isn't there yet: a log is written on where it is."""
    path, number = folder / f"trace_{name}.log", 2
    while path.exists():
        path, number = folder / f"trace_{name}_{number}.log", number + 1
    return path


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is no time in seconds")
    return seconds
