"""`python -m explorer lint module:function`: pitfalls as terminal text, JSON or SARIF."""

from __future__ import annotations

import argparse
import contextlib
import sys
from typing import Any

from explorer.capture.command_target import add_target, arguments_of, function_of
from explorer.files.reports import add_format
from explorer.model.findings import SEVERITIES, Findings

_FORMATS = {"text": Findings.to_text, "json": Findings.to_json, "sarif": Findings.to_sarif}
_NEVER = "never"
_NOT_LINTED = 2


def add_lint(verbs: Any) -> None:
    about = (
        "Trace a function once, run nothing, and say what may go wrong with it. Exit status: 1 if "
        "something as severe as --fail-on was found, 2 if it could not be loaded or traced."
    )
    verb = verbs.add_parser("lint", help="find the pitfalls of a function", description=about)
    add_target(verb)
    add_format(verb, "sarif")
    verb.add_argument("--rules", metavar="RULES", help="check only these rules: EX001,impure-time")
    verb.add_argument("--ignore", metavar="RULES", default="", help="don't ask these")
    verb.add_argument("--thorough", action="store_true", help="trace twice, and compare: finds what was baked in")
    verb.add_argument("--fix", action="store_true", help="show rewrites; each is proven by one more trace")
    verb.add_argument("--target", dest="hardware", metavar="HARDWARE", help="also compile for it: h100, v5e:4x4, …")
    verb.add_argument(
        "--fail-on",
        choices=(*SEVERITIES, _NEVER),
        default="error",
        help="lowest severity that sets the exit status to 1; error if not given",
    )
    verb.set_defaults(run=_lint, error_status=_NOT_LINTED)


def _lint(given: argparse.Namespace) -> int:
    from explorer.pitfalls.lint import LintOptions, run_rules  # the other verbs start without JAX

    # Output of the user's code while it is imported and traced isn't part of the report.
    with contextlib.redirect_stdout(sys.stderr):
        function, module = function_of(given.target)
        args, kwargs = arguments_of(function, given.arg, vars(module))
        options = LintOptions(given.rules, given.ignore, given.thorough, given.fix, target=given.hardware)
        findings = run_rules(function, args, kwargs, options)
    print(_FORMATS[given.format](findings))
    grave = SEVERITIES[: SEVERITIES.index(given.fail_on) + 1] if given.fail_on != _NEVER else ()
    if any(finding.severity in grave for finding in findings):
        return 1
    return _NOT_LINTED if findings.failure else 0
