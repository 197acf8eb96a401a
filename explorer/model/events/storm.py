"""A recompile storm: one function that is compiled again and again."""

from __future__ import annotations

from dataclasses import dataclass

from explorer.model.events.event import Place, Reason
from explorer.model.events.family_counts import FamilyKey

STORM = 8  # compiles of one function past which something is wrong


@dataclass(frozen=True, slots=True)
class Storm:
    """One function that was compiled too often.

    Args:
        function: Its name.
        family: Process, name, file and line of what counts as this function.
        compiles: How many calls of it had to trace, lower or compile.
        seconds: What they took in all.
        changes: How many of them came of `reason`.
        reason: The last of the most frequent kind of reason: `leaf` is what varies, `fix` the cure.
        at: The user's line of the last call.
        eager: It is one of JAX's own, run outside of any `jit`.
        label: What a person calls the file that it is defined in: `train.py`, `cell [4]`.

    Example:
        >>> import explorer, jax, jax.numpy as jnp, warnings
        >>> xs = [jnp.ones(n) for n in range(1, 8)]
        >>> double = jax.jit(lambda x: x * 2)
        >>> with warnings.catch_warnings(action="ignore"), explorer.watch(storm=5) as ledger:
        ...     _ = [double(x) for x in xs]
        >>> storm, = ledger.storms
        >>> storm.compiles, storm.leaf, storm.function
        (7, 'x.shape[0]', '<lambda>')
    """

    function: str
    family: FamilyKey
    compiles: int
    seconds: float
    changes: int
    reason: Reason
    at: Place | None = None
    eager: bool = False
    label: str = ""

    @property
    def leaf(self) -> str:
        """What varies; empty if it is no argument."""
        return self.reason.leaf

    @property
    def cure(self) -> str:
        """Code that would stop it, or one sentence; empty where none is known."""
        return self.reason.fix

    @property
    def text(self) -> str:
        """What a person has to know: the function, the cost, what varies, the cure."""
        name = f"the operation {self.function}" if self.eager else self.function
        _, _, file, line = self.family
        where = f" ({self.label}, line {line})" if file and not self.eager else ""
        text = f"{name}{where} was compiled {self.compiles} times, {self.seconds:.3g} s in all{self._why()}"
        cure = self.cure.strip().replace("\n", "\n    ")
        return f"{text}\n  Hint: {cure}" if cure else text

    def _why(self) -> str:
        reason = self.reason
        if not self.changes:
            return "."
        if not reason.leaf:
            return f"; {self.changes} times as {reason}." if reason.kind != "unknown" else "."
        last = f" (lately {reason.change})" if reason.change else ""
        return f"; `{reason.leaf}` changed {self.changes} times{last}."

    def __repr__(self) -> str:
        leaf = f"; {self.leaf} varies" if self.leaf else f"; {self.reason.kind}"
        return f"Storm({self.function}: {self.compiles} compiles{leaf})"
