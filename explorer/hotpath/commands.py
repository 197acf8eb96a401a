"""`python -m explorer hot`, `trace` and `visualize`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from explorer.capture.script import add_script, read_script, run_script, show
from explorer.files.instruction_log import read_timeline
from explorer.files.reports import add_format, add_output, is_json, positive, present, script_output, writable
from explorer.model.results.hot_paths import OperationTimeline

_MODES = ("default", "reduce-overhead", "max-autotune")


def add_hot(verbs: Any) -> None:
    about = (
        "Run a script as Python would; functions that are called often run compiled, where that is proven safe and "
        "measured faster. At the end, stderr has the compiled functions, the time saved, and why others "
        "stay eager."
    )
    verb = verbs.add_parser("hot", help="run a script, its hot functions compiled", description=about)
    verb.add_argument("--threshold", metavar="N", type=_count, help="compile from so many calls on; 10 otherwise")
    verb.add_argument("--mode", choices=_MODES, default="default", help="how much is done for a function")
    verb.add_argument("--wait", action="store_true", help="let the program wait for compiles")
    verb.add_argument("--save", metavar="FILE", type=writable(), help="also save what was seen, as JSON")
    verb.add_argument("--html", metavar="FILE", type=writable((".html",)), help="also write it as one page")
    add_format(verb)
    add_script(verb)
    verb.set_defaults(run=_hot)


def _hot(given: argparse.Namespace) -> int:
    from explorer.hotpath.auto import auto_compile, threshold

    text = None if given.module else read_script(given.script)
    hot = auto_compile(threshold=given.threshold or threshold(), mode=given.mode, background=not given.wait).start()
    try:
        with script_output(given):
            status = run_script(given.script, given.arguments, text, hot.compile_script)
    finally:
        hot.stop()
        report = hot.report()
        if given.save:
            _write(lambda: report.save(given.save))
        if given.html:
            _write(lambda: report.to_html(given.html))
        files = [path for path in (given.save, given.html) if path and path.is_file()]
        _write(
            lambda: present(given, "hot", report, lambda: show(report, sys.stderr, soft_wrap=True), files, sys.stderr)
        )
    return status


def _write(write: Callable[[], object]) -> None:
    """Run `write`; print its error on stderr, because a failed report must not change the script's exit."""
    try:
        write()
    except Exception as error:
        with suppress(OSError, ValueError):
            print(f"explorer: the report failed: {type(error).__name__}: {error}", file=sys.stderr)


def _count(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of calls from 1 on")
    return int(text)


_WRITERS = {".png": OperationTimeline.to_png, ".svg": OperationTimeline.to_svg, ".html": OperationTimeline.to_html}


def add_trace(verbs: Any) -> None:
    about = (
        "Run a script as Python would, and log each operation that it runs for some seconds, from the first one on; "
        "afterwards it continues without a log. With EXPLORER_AUTO_COMPILE=1 its hot functions run compiled."
    )
    verb = verbs.add_parser("trace", help="log the operations that a script runs", description=about)
    verb.add_argument("-s", "--seconds", metavar="S", type=positive, default=5.0, help="how long; 5 otherwise")
    verb.add_argument("--dir", metavar="DIR", type=Path, default=Path(), help="where to: DIR/trace_SCRIPT.log")
    add_format(verb)
    add_script(verb)
    verb.set_defaults(run=_trace)


def add_visualize(verbs: Any) -> None:
    about = "Draw an instruction log over time: operations one by one, compiled functions, and compiles."
    verb = verbs.add_parser("visualize", help="draw an instruction log", description=about)
    verb.add_argument("log", metavar="LOG", help="what trace wrote, or EXPLORER_INSTRUCTION_LOG")
    about_output = f"where to: {', '.join(_WRITERS)}; without it a sentence is printed"
    add_output(verb, about_output, _WRITERS, several=True)
    add_format(verb)
    verb.set_defaults(run=_visualize)


def _trace(given: argparse.Namespace) -> int:
    from explorer.files.instruction_log import open_log
    from explorer.hotpath.auto import active
    from explorer.hotpath.report import LogListener

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
    """Return the path `trace_NAME.log` in the folder, with a number if that file exists, as logs append to existing
    files.
    """
    path, number = folder / f"trace_{name}.log", 2
    while path.exists():
        path, number = folder / f"trace_{name}_{number}.log", number + 1
    return path
