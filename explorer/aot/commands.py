"""`python -m explorer padding module:function --arg "f32[b,s,64]"`: report whether one binary can serve every size."""

from __future__ import annotations

import argparse
import contextlib
import sys
import warnings
from collections.abc import Mapping
from typing import Any

from explorer.aot.compile import compile
from explorer.aot.inputs import InputInfo, NamedDimension
from explorer.capture.command_target import add_target, arguments_of, function_of, parse_symbolic_spec
from explorer.errors import OptionError, TracedPerShapeWarning
from explorer.files.reports import add_format, add_output, present
from explorer.model.results.dynamic_report import DynamicReport

_MIN, _MAX = 1, 64  # range of a dimension if none is given


def add_padding(verbs: Any) -> None:
    about = (
        "Say whether a function of sizes that vary can be padded, so that one binary serves every size, and if not, "
        "which equations prevent that, with their lines. It is traced, and one binary is compiled; nothing runs. "
        "Exit status: 0 if one binary serves, 1 if each size needs a binary of its own, 2 if it could not be looked at."
    )
    verb = verbs.add_parser("padding", help="say whether one binary can serve every size", description=about)
    add_target(verb)
    verb.add_argument(
        "--dim",
        metavar="NAME=MIN:MAX",
        type=_range,
        action="append",
        default=[],
        help=f"the sizes that a name in a shape stands for, as batch=1:64; those not given are {_MIN}:{_MAX}",
    )
    add_output(verb, "also write the report as one page (.html)", [".html"])
    add_format(verb)
    verb.set_defaults(run=_padding, error_status=2)


def _padding(given: argparse.Namespace) -> int:
    # Prints of the user's code while it is imported and traced aren't part of the report.
    with contextlib.redirect_stdout(sys.stderr), warnings.catch_warnings():
        warnings.simplefilter("ignore", TracedPerShapeWarning)  # the report has the same information
        report = _report(given.target, given.arg, dict(given.dim))
    files = [report.to_html(given.output)] if given.output is not None else []
    present(given, "padding", report, lambda: print(report.to_text()), files)
    return 1 if report.verdict == "specialised" else 0


def _report(target: str, texts: list[str], ranges: Mapping[str, tuple[int, int]]) -> DynamicReport:
    function, module = function_of(target)
    names = dict(vars(module))
    used: set[str] = set()
    arguments = [_with_symbols(text, ranges, names, used) for text in texts]
    if unused := ranges.keys() - used:
        raise OptionError(
            f"--dim {sorted(unused)[0]} is in no argument's shape.\n  Hint: --arg 'f32[{sorted(unused)[0]},8]'."
        )
    args, kwargs = arguments_of(function, arguments, names)
    return compile(function, args=args, kwargs=kwargs, dynamic="auto").dynamic_report


def _with_symbols(text: str, ranges: Mapping[str, tuple[int, int]], names: dict[str, Any], used: set[str]) -> str:
    """Return an argument's text, with a shape that has symbols replaced by a new name.

    `names` gets the name's `InputInfo`, and `used` the symbols.
    """
    name, equal, value = text.partition("=")
    spec = parse_symbolic_spec(value if equal else text)
    if spec is None:
        return text
    shape, dtype = spec
    used.update(size for size in shape if isinstance(size, str))
    stand_in = f"_input_{len(names)}"
    names[stand_in] = InputInfo(tuple(_dimension(size, ranges) for size in shape), dtype)
    return f"{name}={stand_in}" if equal else stand_in


def _dimension(size: int | str, ranges: Mapping[str, tuple[int, int]]) -> int | NamedDimension:
    if isinstance(size, int):
        return size
    least, most = ranges.get(size, (_MIN, _MAX))
    return NamedDimension(size, least, (least + most) // 2, most)


def _range(text: str) -> tuple[str, tuple[int, int]]:
    name, _, sizes = text.partition("=")
    least, _, most = sizes.partition(":")
    if not (name.isidentifier() and least.isdecimal() and most.isdecimal() and int(least) <= int(most)):
        raise argparse.ArgumentTypeError(f"{text!r} is no range of sizes, as batch=1:64")
    return name, (int(least), int(most))
