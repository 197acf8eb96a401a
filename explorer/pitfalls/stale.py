"""What a compiled function still uses though it has changed since its trace."""

from __future__ import annotations

from typing import Any

from explorer.model.findings.finding import Finding
from explorer.model.findings.findings import Findings
from explorer.pitfalls.evidence import Evidence
from explorer.pitfalls.reach import reachable
from explorer.pitfalls.reads import Read, reads
from explorer.pitfalls.rules.stale_closure import stale
from explorer.pitfalls.state import Change, same, snapshot

__all__ = ["recheck"]


def recheck(evidence: Evidence) -> Findings:
    """Which of the values that a function read while it was traced are others now.

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
        >>> recheck(evidence)
        Findings(<lambda>: nothing found)
    """
    now = snapshot(reachable(evidence.function))
    changes = list(evidence.after.changes(now))
    values = now.values
    found: list[Finding] = []
    for read in reads(evidence) if changes else ():
        if any(_concerns(change, read, values) for change in changes):
            found.append(stale(evidence.name, read, values.get(read.path, ...)))
    return Findings(found, function=evidence.name)


def _concerns(change: Change, read: Read, values: dict[str, Any]) -> bool:
    if change.path == read.path or change.path.startswith((f"{read.path}[", f"{read.path}.")):
        return True
    # What holds it is another one: its own value may be the same.
    is_around = read.path.startswith((f"{change.path}[", f"{change.path}."))
    return is_around and not same(values.get(read.path, ...), read.value)
