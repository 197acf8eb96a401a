"""Running the user's code in this process: a script as Python would, with its arguments, traceback and exit status.

The output of a function that Explorer runs is shown for its first call or trace, then muted and counted.
"""

from __future__ import annotations

import os
import runpy
import sys
import threading
from argparse import REMAINDER
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from io import open_code
from types import CodeType, ModuleType, TracebackType
from typing import Any, TextIO

Compile = Callable[[bytes, str, dict[str, Any]], CodeType]
_ROOT = os.path.dirname(os.path.dirname(__file__))
_HOT = tuple(os.path.join(_ROOT, room, "") for room in ("hotpath", "runtime"))  # Ctrl-C may come while that runs
_INTERRUPTED = 130  # a shell's exit status after Ctrl-C


def add_script(verb: Any) -> None:
    """Add the arguments of the command line that name a script, or a module, and its arguments."""
    verb.add_argument("-m", dest="module", action="store_true", help="SCRIPT is the name of a module, as in python -m")
    verb.add_argument("script", metavar="SCRIPT", help="what to run")
    verb.add_argument("arguments", metavar="ARG", nargs=REMAINDER, help="what to pass to it")


_WIDTH = 120  # characters, if the output is no terminal


def show(value: Any, file: TextIO, *, soft_wrap: bool = False) -> None:
    """Print a value as rich shows it. A fault in its view must not cost the script's end."""
    from rich.console import Console

    try:
        Console(file=file, width=None if file.isatty() else _WIDTH, soft_wrap=soft_wrap).print(value)
    except Exception as error:
        print(f"{value!r}\n(the view failed: {type(error).__name__}: {error})", file=file)


def read_script(script: str) -> bytes:
    """Return the text of a script as Python reads it; raise OSError if it can't be read."""
    with open_code(os.path.abspath(script)) as file:
        return file.read()


def compile_script(text: bytes, file: str, namespace: dict[str, Any]) -> CodeType:
    return compile(text, file, "exec", dont_inherit=True)


def run_script(
    script: str, arguments: Sequence[str], text: bytes | None, compile_text: Compile = compile_script
) -> int:
    """Run a script's text, or a module, as Python would; return the exit status, and print a traceback to stderr."""
    sys.argv[:] = [script, *arguments]
    try:
        if text is None:
            runpy.run_module(script, run_name="__main__", alter_sys=True)
        else:
            _run_text(script, text, compile_text)
    except SystemExit as exit_:
        if exit_.code is None or isinstance(exit_.code, int):
            return exit_.code or 0
        print(exit_.code, file=sys.stderr)
        return 1
    except BaseException as error:
        # The traceback goes to stderr: what the script printed comes first.
        sys.stdout.flush()
        traceback = _its_own(error.__traceback__)
        sys.excepthook(type(error), error.with_traceback(traceback), traceback)
        return _INTERRUPTED if isinstance(error, KeyboardInterrupt) else 1
    return 0


def _run_text(script: str, text: bytes, compile_text: Compile) -> None:
    main = ModuleType("__main__")
    code = compile_text(text, script, main.__dict__)
    main.__dict__.update(__file__=os.path.abspath(script), __builtins__=__builtins__)
    # As `python script.py` does: imports are looked up next to the script.
    sys.path[0] = os.path.dirname(os.path.abspath(script))
    sys.modules["__main__"] = main  # pickle and subprocesses look names up there
    exec(code, main.__dict__)


def _its_own(traceback: TracebackType | None) -> TracebackType | None:
    """Return a traceback without frames of this file, of runpy, and of hot functions' wrappers."""
    own: list[TracebackType] = []
    while traceback is not None:
        file = traceback.tb_frame.f_code.co_filename
        is_runpy = traceback.tb_frame.f_globals.get("__name__") == "runpy"
        if file != __file__ and not file.startswith(_HOT) and not is_runpy:
            own.append(traceback)
        traceback = traceback.tb_next
    for frame, inner in zip(own, [*own[1:], None], strict=False):
        frame.tb_next = inner
    return own[0] if own else None


class Prints:
    """A stand-in for `sys.stdout` that passes on what is written, or counts the lines if muted.

    It always passes on what the user's other threads write. The runtime's threads, which run callbacks such as
    `jax.debug.print`, are not Python's own, and count as the measured function's.
    """

    def __init__(self, stream: Any) -> None:
        self.stream = stream
        self.is_muted = False
        self.lines = 0
        self._owner = threading.get_ident()

    def write(self, text: str) -> int:
        thread = threading.current_thread()
        is_users = thread.ident != self._owner and not isinstance(thread, threading._DummyThread)  # pyright: ignore[reportPrivateUsage, reportAttributeAccessIssue] - nothing public tells a thread that Python didn't start
        if not self.is_muted or is_users:
            return self.stream.write(text)
        self.lines += text.count("\n")
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)

    def mute(self) -> None:
        self.is_muted = True

    @contextmanager
    def muted(self) -> Generator[None]:
        before, self.is_muted = self.is_muted, True
        try:
            yield
        finally:
            self.is_muted = before

    @property
    def notes(self) -> list[str]:
        if not self.lines:
            return []
        return [
            f"it prints: shown for the first call, then {self.lines:,} line{'s' * (self.lines != 1)} muted; "
            "printing takes time too, and that is part of the measured time"
        ]


@contextmanager
def printed_once() -> Generator[Prints]:
    """Yield a stand-in for `sys.stdout` that can mute prints and count their lines; nested use yields the same."""
    if isinstance(sys.stdout, Prints):
        yield sys.stdout
        return
    prints = Prints(sys.stdout)
    sys.stdout = prints  # pyright: ignore[reportAttributeAccessIssue] - it has all that the stream has
    try:
        yield prints
    finally:
        if sys.stdout is prints:
            sys.stdout = prints.stream
