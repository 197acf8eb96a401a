"""The magics, thin adapters over functions of the package, and their registration with IPython."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING, Any, cast

from IPython.core.magic import cell_magic, line_cell_magic, line_magic, magics_class, needs_local_scope, no_var_expand
from IPython.core.magic_arguments import MagicArgumentParser, argument, kwds, magic_arguments
from IPython.display import display  # pyright: ignore[reportUnknownVariableType] - IPython annotates it in part

import explorer as ex  # loads each module at first use
from explorer.errors import ExploreError, ExpressionError
from explorer.model.capture import Capture
from explorer.model.findings import Findings
from explorer.notebook.shell import (
    ShellMagics,
    SingleCallMagics,
    completer,
    given,
    parse_cell,
    parse_options,
    run_cell,
    split_options,
    users_errors,
    writable_file,
    written,
)
from explorer.view.session import in_kernel

if TYPE_CHECKING:  # `%load_ext explorer` loads nothing that only a magic needs
    from explorer.capture.call import Call
    from explorer.hotpath.auto import AutoCompile
    from explorer.ledger.watch import Watch
    from explorer.model.events.ledger import Ledger
    from explorer.model.results.profile import Profile
    from explorer.model.results.timing import Timing
    from explorer.sessions.session import Session

_EXPLORE_FLAGS, _LINT_FLAGS = ("--passes",), ("--thorough", "--fix")
_TIME_FLAGS, _PROFILE_FLAGS = ("--no-eager",), ("--roofline",)
_HTML = argument("--html", metavar="FILE", type=writable_file, help="also write the view as one self-contained page")


def _parser(magic: object) -> MagicArgumentParser:
    return cast(MagicArgumentParser, cast(Any, magic).parser)


def _call_options(magic: str, flags: Sequence[str], line: str) -> tuple[argparse.Namespace, str]:
    """Return the options of a magic over one call, and the rest of its line, which is the call."""
    words, rest = split_options(line, flags)
    return parse_options(_parser(getattr(CallMagics, magic)), f"%{magic}", " ".join(words), words), rest


@magics_class
class CallMagics(SingleCallMagics):
    """Magics over one call: `%explore`, `%lint`, `%jtime` and `%jprofile`."""

    # The call is no argument of the parsers: IPython then completes inside it as in any code.

    @magic_arguments()
    @argument(
        "--save", metavar="FILE", type=writable_file, help="also save the capture; explorer.load(FILE) gives it back"
    )
    @_HTML
    @argument("--passes", action="store_true", help="also record the compiler's passes, however large the program is")
    @argument("--target", metavar="HARDWARE", help="compile for hardware that needn't be here: h100, 8xh100, v5e:4x4")
    @kwds(usage="%(prog)s [--save FILE] [--html FILE] [--passes] [--target HARDWARE] f(x, y=1)")  # pyright: ignore[reportUntypedFunctionDecorator] - IPython's
    @no_var_expand
    @needs_local_scope
    @line_cell_magic
    @users_errors
    def explore(self, line: str, cell: str | None = None, local_ns: Mapping[str, Any] | None = None) -> Capture:
        """Show how the compiler transforms a call: jaxpr, StableHLO and optimized HLO, linked to your lines.

        `%explore f(x, y=1)` evaluates the function and its arguments as Python would. The call is traced, lowered and
        compiled, but not run. The capture is returned: `capture = %explore f(x)` keeps it.

        `%%explore` at the top of a cell runs the cell up to its last statement, which is the call. `f(x)` there is
        explored and not run; `y = f(x)` is explored and also run, so that `y` has its value.

        Errors are those of `explorer.explore`. If a step fails, the steps before it are shown, and the error has them
        as `.capture`.
        """
        __tracebackhide__ = True  # IPython leaves such a frame out of a traceback
        options, rest = _call_options("explore", _EXPLORE_FLAGS, line)

        def explore(call: Call) -> Capture:
            return ex.explore(call, target=options.target)

        return _written_capture(self.result_of("explore", explore, line, rest, cell, local_ns), options)

    @magic_arguments()
    @argument("--rules", metavar="RULES", help="check only these, by name or number: EX001,impure-time")
    @argument("--ignore", metavar="RULES", default="", help="skip these rules")
    @argument("--thorough", action="store_true", help="trace twice, and compare: finds what was baked in")
    @argument("--fix", action="store_true", help="also rewrite the function, where one more trace proves the rewrite")
    @argument("--target", metavar="HARDWARE", help="also compile for hardware that needn't be here: h100, v5e:4x4")
    @argument("--html", metavar="FILE", type=writable_file, help="also write the findings as one self-contained page")
    @kwds(usage="%(prog)s [--rules RULES] [--thorough] [--fix] [--target HARDWARE] [--html FILE] f(x, y=1)")  # pyright: ignore[reportUntypedFunctionDecorator] - IPython's
    @no_var_expand
    @needs_local_scope
    @line_cell_magic
    @users_errors
    def lint(self, line: str, cell: str | None = None, local_ns: Mapping[str, Any] | None = None) -> Findings:
        """Report pitfalls of compiling a call, each with its line, the evidence and a fix.

        `%lint f(x, y=1)` evaluates the function and its arguments as Python would. The call is traced once, but
        neither compiled nor run. The findings are returned: `findings = %lint f(x)` keeps them.

        `%%lint` at the top of a cell runs the cell up to its last statement, which is the call. `f(x)` there is traced
        and not run; `y = f(x)` is also run, so that `y` has its value.
        """
        __tracebackhide__ = True
        options, rest = _call_options("lint", _LINT_FLAGS, line)

        def lint(call: Call) -> Findings:
            return ex.lint(
                call, rules=options.rules, ignore=options.ignore, thorough=options.thorough, fixes=options.fix,
                target=options.target,
            )  # fmt: skip

        findings = self.result_of("lint", lint, line, rest, cell, local_ns)
        hint = "\n  Hint: the findings are still there: findings = %lint …"
        return written(findings, "findings", (options.html, findings.to_html), hint=hint)

    @magic_arguments()
    @argument("--seconds", metavar="S", type=float, help="how long to measure, about")
    @argument("--no-eager", action="store_true", help="don't time the function operation by operation")
    @argument("--html", metavar="FILE", type=writable_file, help="also write the chart as one self-contained page")
    @kwds(usage="%(prog)s [--seconds S] [--no-eager] [--html FILE] f(x, y=1)")  # pyright: ignore[reportUntypedFunctionDecorator] - IPython's
    @no_var_expand
    @needs_local_scope
    @line_cell_magic
    @users_errors
    def jtime(self, line: str, cell: str | None = None, local_ns: Mapping[str, Any] | None = None) -> Timing:
        """Time a call: as written, the first time, and once it is compiled.

        `%jtime f(x, y=1)` evaluates the function and its arguments once, as Python would. The call runs again and
        again, each time until its result is there. `timing = %jtime f(x)` keeps the timing.

        `%%jtime` at the top of a cell runs the cell up to its last statement, which is the call. After `y = f(x)`
        there, `y` has its value.
        """
        __tracebackhide__ = True
        options, rest = _call_options("jtime", _TIME_FLAGS, line)
        measure = partial(ex.time, eager=not options.no_eager, **given(options, "seconds"))
        timing: Timing = self.result_of("jtime", measure, line, rest, cell, local_ns)
        return written(timing, "timing", (options.html, lambda file: timing.chart().to_html(file)))

    @magic_arguments()
    @argument("--runs", metavar="N", type=int, help="how many calls to record")
    @argument("--seconds", metavar="S", type=float, help="how long to record, about")
    @argument("--roofline", action="store_true", help="also show how much of the time the machine could have saved")
    @_HTML
    @argument("--perfetto", metavar="FILE", type=writable_file, help="also write a trace for ui.perfetto.dev")
    @kwds(usage="%(prog)s [--runs N] [--seconds S] [--roofline] [--html FILE] [--perfetto FILE] f(x, y=1)")  # pyright: ignore[reportUntypedFunctionDecorator] - IPython's
    @no_var_expand
    @needs_local_scope
    @line_cell_magic
    @users_errors
    def jprofile(self, line: str, cell: str | None = None, local_ns: Mapping[str, Any] | None = None) -> Profile:
        """Profile a compiled call: its time by source line and by instruction.

        `%jprofile f(x, y=1)` evaluates the function and its arguments once, as Python would. The call runs several
        times under XLA's own profiler. `profile = %jprofile f(x)` keeps the profile.

        `%%jprofile` at the top of a cell runs the cell up to its last statement, which is the call. After `y = f(x)`
        there, `y` has its value.
        """
        __tracebackhide__ = True
        options, rest = _call_options("jprofile", _PROFILE_FLAGS, line)
        measure = partial(ex.profile, **given(options, "runs", "seconds"))
        profile: Profile = self.result_of("jprofile", measure, line, rest, cell, local_ns)
        if options.roofline:
            profile = _with_peaks(profile)
        return written(profile, "profile", (options.html, profile.to_html), (options.perfetto, profile.to_perfetto))


def _written_capture(capture: Capture, options: argparse.Namespace) -> Capture:
    failed = "its passes could not be recorded"
    try:
        if options.passes:
            _ = capture.passes
        failed = "could not be written"
        if options.save:
            capture.save(options.save)
        if options.html:
            capture.to_html(options.html)
    # A long compile must not be lost because a file can't be written.
    except Exception as error:
        display(capture)
        message = f"{capture.function} was explored, but {failed}: {type(error).__name__}: {error}"
        raise ExploreError(f"{message}.\n  Hint: the capture is in `.capture` of this error.", capture) from error
    return capture


def _with_peaks(profile: Profile) -> Profile:
    try:
        return profile.with_peaks(ex.peaks())
    except BaseException:  # the profile is shown also if the machine's peaks can't be measured
        display(profile)
        raise


def _rules() -> list[str]:
    from explorer.pitfalls.rule import all_rules

    return sorted(name for rule in all_rules() for name in (rule.code, rule.name))


# The session ----------------------------------------------------------------------------------------------------------

_WATCH_IS_ON = "Now watching. Run your cells, then run %recompiles again. %recompiles off stops watching."
_WATCH_IS_OFF = "Not watching: %recompiles on starts it."
_SESSION_IS_ON = "Now watching. %recompiles off stops watching."


@magics_class
class SessionMagics(ShellMagics):
    """Magics of the session: `%recompiles` and `%explorer`."""

    def __init__(self, shell: Any) -> None:
        super().__init__(shell)
        self._started: Watch | None = None  # not one that a script or the environment had started
        self._waiting: Any = None  # for the user's import of JAX

    @magic_arguments()
    @argument("--save", metavar="FILE", type=writable_file, help="also save the ledger, one event per line, as JSON")
    @_HTML
    @argument("what", nargs="?", help="on, off, or the name of a function to show")  # pyright: ignore[reportUntypedFunctionDecorator] - IPython's
    @no_var_expand
    @line_cell_magic
    @users_errors
    def recompiles(self, line: str, cell: str | None = None) -> Ledger | None:
        """Show compiles, with their time, the reasons for recompiles, and fixes.

        `%recompiles` shows the session's ledger, which begins with `%load_ext explorer`, or later if JAX is imported
        later. `%recompiles off` ends it, and `%recompiles on` begins another. `%recompiles step` shows only the
        function `step`.

        `%%recompiles` at the top of a cell runs the cell and shows its compiles, whether or not the session is
        watched.

        The ledger is returned, as `explorer.watch()` returns it: `ledger = %recompiles` keeps it.
        """
        __tracebackhide__ = True
        options = parse_options(_parser(SessionMagics.recompiles), "%recompiles", line)
        if cell is None:
            ledger = self._of_session(options.what)
        elif options.what in ("on", "off"):
            raise ExpressionError(
                f"%%recompiles watches its cell alone; it can't be turned {options.what}.\n"
                f"  Hint: %recompiles {options.what} is for the session."
            )
        else:
            ledger = self._of_cell(line, cell, options.what)
        hint = "\n  Hint: the ledger is still there: ledger = %recompiles"
        files = () if ledger is None else ((options.save, ledger.save), (options.html, ledger.to_html))
        return written(ledger, "ledger", *files, hint=hint)

    def _of_session(self, what: str | None) -> Ledger | None:
        from explorer.ledger.watch import session, start_session, stop_session

        watch = session()
        if what == "off":
            if watch is None:
                print(_WATCH_IS_OFF)
            return stop_session()
        if watch is None:
            watch = self._started = start_session()
            print(_WATCH_IS_ON)
        return watch if what in (None, "on") else watch.only(what)

    def _of_cell(self, line: str, cell: str, function: str | None) -> Ledger:
        __tracebackhide__ = True
        tree, file = parse_cell(self.shell, f"%%recompiles {line}", cell)
        ledger = ex.watch()
        try:
            # A cell that fails or is interrupted still shows what it compiled.
            run_cell(self.shell, tree, file, cell)
        except BaseException:
            ledger.stop()
            display(ledger)
            raise
        ledger.stop()
        return ledger.only(function) if function else ledger

    @no_var_expand
    @line_magic
    def explorer(self, line: str) -> Session:
        """Show one page for the session: every compiled function, by cost, with its captures and measurements.

        If the session is not watched, it starts watching and says so. `%explorer session.html` also writes the page to
        a file. `explorer.session()` is returned.

        Raises:
            ExpressionError: The file can't be written.
        """
        __tracebackhide__ = True
        from explorer.ledger.watch import start_session

        shown = ex.session()
        if shown.ledger is None or not shown.ledger.on:
            self._started = start_session()
            print(_SESSION_IS_ON)
        path = line.strip().strip("'\"")
        if path:
            try:
                shown.save(path)
            except OSError as error:
                raise ExpressionError(f"%explorer {path}: the page can't be written: {error}.") from None
        return shown

    def watch(self) -> None:
        """Start the session's watch, now or as soon as the user has imported JAX; errors are ignored."""
        if "jax" not in sys.modules:
            self._waiting = _AfterJax(self.watch)
            sys.meta_path.insert(0, self._waiting)
            return
        with suppress(Exception):
            from explorer.ledger.watch import session, start_session

            if session() is None:
                self._started = start_session()

    def stop(self) -> None:
        """Stop the session's watch if these magics started it."""
        if self._waiting in sys.meta_path:
            sys.meta_path.remove(self._waiting)
        if self._started is not None:
            from explorer.ledger.watch import session, stop_session

            if session() is self._started:
                stop_session()


def _watched_names(_: Any) -> list[str]:
    from explorer.ledger.watch import session

    watch = session()
    names = {event.function for event in watch.events} if watch is not None else set[str]()
    return ["off", "on", *sorted(names)]


# Hot paths ------------------------------------------------------------------------------------------------------------


@magics_class
class HotPathsMagics(ShellMagics):
    """Magic over a cell: `%%hotpaths`."""

    @magic_arguments()
    @argument("--threshold", metavar="N", type=int, help="compile a function from this number of calls on")
    @argument("--seconds", metavar="S", type=float, help="and only after this many seconds in its eager calls")
    @argument("--mode", metavar="MODE", help="default, reduce-overhead or max-autotune")
    @argument("--wait", action="store_true", help="wait for compiles, instead of compiling in the background")
    @argument("--save", metavar="FILE", type=writable_file, help="also save the report; HotPaths.load(FILE) opens it")
    @_HTML
    @argument("name", nargs="?", help="keep the hot paths under this name")  # pyright: ignore[reportUntypedFunctionDecorator] - IPython's
    @no_var_expand
    @cell_magic
    @users_errors
    def hotpaths(self, line: str, cell: str) -> AutoCompile | None:
        """Run a cell with hot paths on: functions called often are compiled, where that is safe and faster.

        The cell runs and gives the same results as without the magic. While it runs and afterwards, a view above its
        output shows the compiled functions, the time saved, and why other functions stay eager.

        `%%hotpaths hot` keeps the hot paths under the name `hot`: `hot.functions` has a row for each function, and
        `hot.report()` is the whole report as a value. Errors are the cell's own, and those of `explorer.auto_compile`.
        """
        __tracebackhide__ = True
        options = parse_options(_parser(HotPathsMagics.hotpaths), "%%hotpaths", line)
        if options.name is not None and not options.name.isidentifier():
            raise ExpressionError(
                f"%%hotpaths keeps the hot paths under a name.\n  given:  {options.name}\n"
                "  Hint: write %%hotpaths hot, and the code in the lines below."
            )
        tree, file = parse_cell(self.shell, f"%%hotpaths {line}", cell)
        hot = ex.auto_compile(background=not options.wait, **given(options, "threshold", "seconds", "mode"))
        if options.name:
            self.shell.user_ns[options.name] = hot
        hot.record_operations()
        is_live = in_kernel()
        with hot:
            if is_live:
                display(hot)
            run_cell(self.shell, tree, file, cell, hot.compile_module)
        written(
            hot,
            "hot paths",
            (options.save, lambda file: hot.report().save(file)),
            (options.html, lambda file: hot.report().to_html(file)),
            is_shown=True,
        )
        return None if is_live else hot


_FILES = ("--save", "--html")
_RULES = {"--rules": _rules, "--ignore": _rules}

# Each class with the completers of its magics.
MAGICS: tuple[tuple[Any, dict[str, Any]], ...] = (
    (
        CallMagics,
        {
            "explore": completer(_parser(CallMagics.explore), _FILES, _EXPLORE_FLAGS),
            "lint": completer(_parser(CallMagics.lint), ("--html",), _LINT_FLAGS, _RULES),
            "jtime": completer(_parser(CallMagics.jtime), ("--html",), _TIME_FLAGS),
            "jprofile": completer(_parser(CallMagics.jprofile), ("--html", "--perfetto"), _PROFILE_FLAGS),
        },
    ),
    (SessionMagics, {"recompiles": completer(_parser(SessionMagics.recompiles), _FILES, names=_watched_names)}),
    (HotPathsMagics, {"hotpaths": completer(_parser(HotPathsMagics.hotpaths), _FILES, ("--wait",))}),
)


def load(shell: Any) -> None:
    """Register the magics and their completers with a shell, once."""
    for kind, completers in MAGICS:
        if kind.__name__ not in shell.magics_manager.registry:
            _register(shell, kind(shell=shell))
            for name, completer in _with_signs(completers):
                shell.set_hook("complete_command", completer, str_key=name)
    shell.magics_manager.registry[SessionMagics.__name__].watch()


class _AfterJax(MetaPathFinder):
    """Calls a function once, after the user's import of JAX: an import of ours would come before their settings."""

    def __init__(self, then: Callable[[], object]) -> None:
        self._then = then

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if fullname != "jax" or self not in sys.meta_path:
            return None
        # Removed first, or the search for the real loader would come back here.
        sys.meta_path.remove(self)
        spec = find_spec("jax")
        if spec is not None and spec.loader is not None:
            load_jax = spec.loader.exec_module

            def exec_module(module: ModuleType) -> None:
                load_jax(module)
                self._then()

            spec.loader.exec_module = exec_module
        return spec


def unload(shell: Any) -> None:
    """Undo `load`, if it was called."""
    for kind, completers in MAGICS:
        magics = shell.magics_manager.registry.pop(kind.__name__, None)
        if magics is not None:
            magics.stop()
            _unregister(shell, magics)
            for name, completer in _with_signs(completers):
                _remove_completer(shell.strdispatchers["complete_command"].strs, name, completer)


def _with_signs(completers: dict[str, Any]) -> list[tuple[str, Any]]:
    """Return (name with sign, completer) for each magic, for the line (`%lint`) and for the cell (`%%lint`)."""
    return [(sign + name, completer) for name, completer in completers.items() for sign in ("%", "%%")]


def _register(shell: Any, magics: Any) -> None:
    # Another extension may own one of the names: unloading gives it back.
    for kind, table in magics.magics.items():
        magics.replaced[kind] = {name: old for name in table if (old := shell.magics_manager.magics[kind].get(name))}
    shell.register_magics(magics)


def _unregister(shell: Any, magics: Any) -> None:
    # IPython has no call that undoes `register_magics`.
    shell.configurables.remove(magics)
    registered = shell.magics_manager.magics
    for kind, table in magics.magics.items():
        for name, function in table.items():
            if registered[kind].get(name) == function:  # a later extension may have taken the name
                del registered[kind][name]
                registered[kind].update({n: old for n, old in magics.replaced[kind].items() if n == name})


def _remove_completer(chains: Any, name: str, completer: Any) -> None:
    if name in chains:
        chains[name].chain[:] = [hook for hook in chains[name].chain if hook[1].__func__ is not completer]
        if not chains[name].chain:
            del chains[name]
