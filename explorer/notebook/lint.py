"""`%lint` and `%%lint`: thin adapters over `explorer.lint`."""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping
from functools import partial
from glob import glob
from pathlib import Path
from typing import Any, cast

from IPython.core.error import TryNext, UsageError
from IPython.core.magic import line_cell_magic, magics_class, needs_local_scope, no_var_expand
from IPython.core.magic_arguments import MagicArgumentParser, argument, kwds, magic_arguments
from IPython.display import display  # pyright: ignore[reportUnknownVariableType] - IPython annotates it in part

from explorer.errors import ExplorerError, ExpressionError
from explorer.model.findings import Findings
from explorer.notebook.calls import split_options
from explorer.notebook.magics import callables, writable_file
from explorer.notebook.shell import CallMagics, calling_frame, ended_in_users_code

_FLAGS = ("--thorough", "--fix")
_VALUE = re.compile(r"--(?!thorough\b|fix\b)[\w-]+\s+\S*$")  # the cursor stands in an option's value


class _Call:
    """Stands in for the callee of the user's call: gets the function and its arguments, and lints them.

    Args:
        options: What was asked of `%lint`.
        assigned: The user wants the value too: `y = f(x)`. Then the function is also called.
    """

    def __init__(self, options: argparse.Namespace, assigned: bool) -> None:
        self.options, self.assigned = options, assigned
        self.result: Findings | None = None

    def __call__(self, function: Any, /, *args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True  # IPython leaves such a frame out of a traceback
        from explorer.capture.call import Call
        from explorer.pitfalls.lint import lint

        given = self.options
        call = Call(function, *args, **kwargs)
        options = {"rules": given.rules, "ignore": given.ignore, "thorough": given.thorough, "fixes": given.fix}
        self.result = lint(call, **options, target=given.target)
        return function(*args, **kwargs) if self.assigned else None


@magics_class
class LintMagics(CallMagics):
    """`%lint` and `%%lint`."""

    @magic_arguments()
    @argument("--rules", metavar="RULES", help="ask only these, by name or number: EX001,impure-time")
    @argument("--ignore", metavar="RULES", default="", help="don't ask these")
    @argument("--thorough", action="store_true", help="trace twice, and compare: finds what was baked in")
    @argument(
        "--fix", action="store_true", help="also rewrite the function, where that is proven by one more trace each"
    )
    @argument("--target", metavar="HARDWARE", help="also compile for hardware that needn't be here: h100, v5e:4x4")
    @argument("--html", metavar="FILE", type=writable_file, help="also write the findings as one self-contained page")
    # The call is no argument of the parser: IPython then completes inside it as in any code.
    @kwds(usage="%(prog)s [--rules RULES] [--thorough] [--fix] [--target HARDWARE] [--html FILE] f(x, y=1)")  # pyright: ignore[reportUntypedFunctionDecorator] - IPython's
    @no_var_expand
    @needs_local_scope
    @line_cell_magic
    def lint(self, line: str, cell: str | None = None, local_ns: Mapping[str, Any] | None = None) -> Findings:
        """Say what may go wrong with a call when it is compiled, with the line, what was seen, and the cure.

        As `%lint f(x, y=1)`, the function and its arguments are evaluated as Python would, and the call is traced once,
        but neither compiled nor run. The findings are returned: `findings = %lint f(x)` keeps them.

        As `%%lint` on top of a cell, the cell runs as ever up to its last statement, which is the call. `f(x)` there is
        traced and not run; `y = f(x)` is also run, so that `y` has its value.
        """
        __tracebackhide__ = True  # IPython leaves such a frame out of a traceback
        frame = calling_frame(self.shell)
        try:
            words, rest = split_options(line, _FLAGS)
            options = _options(words)
            findings = self.result_of("lint", partial(_Call, options), line, rest, cell, frame, local_ns)
            return _written(findings, options)
        except ExplorerError as error:
            raise ended_in_users_code(self.shell, error, frame)  # noqa: B904 - the same error, its cause is kept


lint_parser = cast(MagicArgumentParser, cast(Any, LintMagics.lint).parser)


def complete_lint(shell: Any, event: Any) -> list[str]:
    """What may come next: options, what can be called, rules after `--rules`; TryNext where IPython knows better."""
    typed = event.text_until_cursor[len(event.command) :]
    if value := _VALUE.search(typed):
        return sorted(glob(event.symbol + "*")) if value[0].startswith("--html") else _rules()
    _, call = split_options(typed, _FLAGS)
    if "(" in call or "." in call:
        raise TryNext
    options = sorted(set(re.findall(r"--[\w-]+", lint_parser.format_help())))
    return options if event.command.startswith("%%") else callables(shell) + options


def _rules() -> list[str]:
    from explorer.pitfalls.rule import all_rules

    return sorted(name for rule in all_rules() for name in (rule.code, rule.name))


def _options(words: list[str]) -> argparse.Namespace:
    try:
        return lint_parser.parse_args(words)
    except UsageError as error:
        # IPython only prints a UsageError: who runs notebooks unattended would see a cell that passed.
        raise ExpressionError(f"%lint {' '.join(words)}: {error}.\n  Hint: %lint? shows its options.") from None


def _written(findings: Findings, options: argparse.Namespace) -> Findings:
    file: Path | None = options.html
    try:
        if file is not None:
            findings.to_html(file)
    except OSError as error:
        display(findings)
        hint = "Hint: the findings are still there: findings = %lint …"
        raise ExpressionError(f"the findings could not be written: {error}.\n  {hint}") from error
    return findings
