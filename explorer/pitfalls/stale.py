"""What a compiled function still uses though it has changed since its trace."""

from __future__ import annotations

from typing import Any

from explorer.errors import NotRecordedError
from explorer.model.findings import Findings
from explorer.pitfalls.evidence import Evidence
from explorer.pitfalls.reach import reachable
from explorer.pitfalls.reads import Read, reads
from explorer.pitfalls.rules.stale_closure import stale
from explorer.pitfalls.state import Change, same, snapshot


def recheck(findings: Findings) -> Findings:
    """`stale_values` of the trace that the findings are about."""
    if findings.record is None:
        raise NotRecordedError(
            f"what {findings.function} read while it was traced is not known any more.\n"
            "  Hint: keep what explorer.lint(f, x) gives, and ask that."
        )
    return stale_values(findings.record.evidence)


def stale_values(evidence: Evidence) -> Findings:
    """The values that a function read while it was traced and that have changed since.

    Nothing is traced or run: two snapshots are compared, in milliseconds.

    Args:
        evidence: Of `explorer.pitfalls.lint.gather`.

    Returns:
        A finding `stale-closure` of severity *error* for each: calls compute with what it was.

    Example:
        >>> import jax.numpy as jnp
        >>> from explorer.pitfalls.lint import gather
        >>> scale = [2.0]
        >>> evidence = gather(lambda x: x * scale[0], [jnp.ones(3)], {})
        >>> stale_values(evidence)
        Findings(<lambda>: nothing found)
    """
    now = snapshot(reachable(evidence.function))
    changes = list(evidence.after.changes(now))
    values = now.values
    findings = (
        stale(evidence.name, read, values.get(read.path, ...))
        for read in (reads(evidence) if changes else ())
        if any(_concerns(change, read, values) for change in changes)
    )
    return Findings(findings, evidence.name)


def _concerns(change: Change, read: Read, values: dict[str, Any]) -> bool:
    if change.path == read.path or change.path.startswith((f"{read.path}[", f"{read.path}.")):
        return True
    # What holds it is another one: its own value may be the same.
    is_around = read.path.startswith((f"{change.path}[", f"{change.path}."))
    return is_around and not same(values.get(read.path, ...), read.value)
