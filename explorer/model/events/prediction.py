"""A recompile that was foreseen."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from explorer.model.events.event import Event
from explorer.model.events.family_counts import FamilyKey, family_key
from explorer.model.events.key import Leaf


@dataclass(frozen=True, slots=True)
class Prediction:
    """A recompile that will come if a result is passed in again.

    Args:
        function: The name of the function.
        leaf: The array of the argument: `state['step']`; of several with the same fate the first.
        before: Its type in the first call: `int32, weak`.
        after: The type that it is returned as.
        fix: Code that makes it the same type from the start.
        text: One sentence for a person.
        result: What would be passed in again: `result`, `result[0]`.
        leaves: All with this fate.
        family: Process, name, file and line of the function.
        came_true: The id of the compile that it foresaw; empty as long as there was none.

    Example:
        >>> import explorer, jax, jax.numpy as jnp
        >>> @jax.jit
        ... def step(n):
        ...     return n + jnp.int32(1)
        >>> with explorer.watch() as ledger:
        ...     _ = step(1)
        >>> [(one.leaf, one.before, one.after) for one in ledger.predictions]
        [('n', 'int32, weak', 'int32')]
    """

    function: str
    leaf: str
    before: str
    after: str
    fix: str = ""
    text: str = ""
    result: str = ""
    leaves: tuple[str, ...] = ()
    family: FamilyKey = field(default=("", "", "", 0), repr=False)
    came_true: str = ""

    def after_event(self, event: Event) -> Prediction:
        """The prediction in the light of a call that was built again."""
        if self.came_true or event.key is None or family_key(event) != self.family:
            return self
        types = {leaf.path: type_text(leaf) for leaf in event.key.leaves}
        if types.get(self.leaf) != self.after:
            return self
        return replace(self, came_true=event.id or event.function)

    def __str__(self) -> str:
        return self.text


def type_text(leaf: Leaf) -> str:
    """`int32`, or `int32, weak`."""
    return f"{leaf.dtype}, weak" if leaf.weak else leaf.dtype
