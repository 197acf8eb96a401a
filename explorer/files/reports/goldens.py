"""What was recorded of a function, and where its check began to fail, as the body of a report."""

from __future__ import annotations

from typing import Any

from explorer.files.reports.report import fields_of, plain
from explorer.model.golden import Bisection, Golden
from explorer.model.units import count_text


def record_body(golden: Golden) -> dict[str, Any]:
    """What a golden file has."""
    programs = [f"{program.target}: {count_text(program.kernels, 'kernel')}" for program in golden.programs]
    return {
        **fields_of(golden, "function", "place", "arguments", "jax"),
        "summary": [f"{golden.function} is recorded for {', '.join(programs)}."],
        "programs": [plain(program) for program in golden.programs],
        **fields_of(golden, "compiles", "tolerance"),
    }


def bisect_body(bisection: Bisection) -> dict[str, Any]:
    """Which candidate is the first that fails."""
    return {
        "summary": bisection.to_text().splitlines()[: 1 + bool(bisection.between)],
        "first_failing": plain(bisection.first),
        "last_passing": bisection.last,
        "not_checked": list(bisection.between),
        "tried": [plain(verdict) for verdict in bisection.tried],
    }
