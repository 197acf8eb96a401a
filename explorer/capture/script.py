"""Running a script as Python would, in this process: arguments, path, traceback, exit status."""

from __future__ import annotations

import os
import runpy
import sys
from collections.abc import Callable, Sequence
from io import open_code
from types import CodeType, ModuleType, TracebackType
from typing import Any

Compile = Callable[[bytes, str, dict[str, Any]], CodeType]
_ROOT = os.path.dirname(os.path.dirname(__file__))
_HOT = tuple(os.path.join(_ROOT, room, "") for room in ("hotpath", "runtime"))  # Ctrl-C may come while that runs
_INTERRUPTED = 130  # a shell's exit status after Ctrl-C


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
        sys.stdout.flush()
        traceback = _its_own(error.__traceback__)
        sys.excepthook(type(error), error.with_traceback(traceback), traceback)
        return _INTERRUPTED if isinstance(error, KeyboardInterrupt) else 1
    return 0


def _run_text(script: str, text: bytes, compile_text: Compile) -> None:
    main = ModuleType("__main__")
    code = compile_text(text, script, main.__dict__)
    main.__dict__.update(__file__=os.path.abspath(script), __builtins__=__builtins__)
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
