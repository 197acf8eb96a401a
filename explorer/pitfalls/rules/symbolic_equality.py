"""`if n == 1` for a symbolic dimension: False without a word, though it may be 1, and the other branch is traced."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explorer.model.findings import Finding
from explorer.model.stage import is_library_file
from explorer.pitfalls.evidence import Evidence
from explorer.pitfalls.locations import expression_on_line, span_location
from explorer.pitfalls.rule import Rule


def check(evidence: Evidence) -> Iterator[Finding]:
    reported: set[tuple[str, str, int]] = set()
    for test in evidence.undecided:
        key = test.text, test.file, test.line
        if key in reported or is_library_file(test.file):
            continue
        reported.add(key)
        answer = "True" if " != " in test.text else "False"
        yield RULE.finding(
            f"{evidence.name} asks whether {test.text}: that is taken to be {answer} for every size, which it isn't",
            evidence=f"{test.text} was asked of a symbolic dimension in the trace, and holds for some sizes only",
            fix="compile the special sizes apart, with numbers for them; or compute so that no size is special",
            **span_location(
                test.file,
                expression_on_line(test.file, test.line, lambda node: isinstance(node, ast.Compare)),
            ),
        )


RULE = Rule(
    "symbolic-equality",
    "EX028",
    "error",
    "Whether a symbolic dimension equals a number is answered once for all sizes.",
    "https://docs.jax.dev/en/latest/export/shape_poly.html#comparison-of-symbolic-dimensions-is-partially-supported",
    check,
    passive=True,
)
