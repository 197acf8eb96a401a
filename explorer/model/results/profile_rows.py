"""The rows of a profile: one for each instruction that ran, one for each source line."""

from __future__ import annotations

from dataclasses import dataclass
from math import nan
from typing import NamedTuple

from explorer.model.graph import Frame


@dataclass(frozen=True, slots=True)
class OpTime:
    """The time of one instruction, a call of the profiled function.

    Args:
        name, op: The instruction's, in the optimised program: `fusion.3`, `fusion`.
        module: The executable that it is in: `jit_step`; `program` tells those of one name apart.
        seconds: Its own time a call: without what runs inside it, of a moment shared with others its part.
        share: Of the device's time, 0 to 1.
        total: With what runs inside: of a `while`, its body; else the same as `seconds`.
        count: How often it ran a call.
        flops, bytes: What it does and moves a call; NaN where nobody knows, as of a custom call.
        wasted: Seconds over what the machine's peaks allow for it; None until they were measured.
        stack: The Python stack that it comes from, innermost frame first; of a fusion, the one that takes most of it.
        scope: Its named scopes, `layer/attention`; empty for none.
        computes: Of a fusion, the operations that it is about, `tanh, multiply`; empty where nothing is known of it.

    Example:
        >>> import explorer, jax, jax.numpy as jnp
        >>> measured = explorer.profile(jax.jit(lambda x: jnp.sin(x) @ x), jnp.ones((64, 64)), runs=3)
        >>> longest = measured.ops[0]
        >>> longest.module, longest.seconds >= measured.ops[-1].seconds, 0 < longest.share <= 1
        ('jit__lambda', True, True)
    """

    name: str
    op: str
    module: str
    program: int
    seconds: float
    share: float
    total: float
    count: float
    flops: float
    bytes: float
    wasted: float | None
    stack: tuple[Frame, ...]
    scope: str
    computes: str = ""

    @property
    def title(self) -> str:
        """What it computes, which says more than the compiler's number for it; else its name."""
        return self.computes or self.name


@dataclass(frozen=True, slots=True)
class LineTime:
    """The time of one line of the source, a call of the profiled function.

    Args:
        file, line, text: The line, from 1; its text without indentation, empty where the source is not known.
        seconds: Of each kernel, the part that comes from this line.
        share: Of the device's time, 0 to 1.
        ops: How many kernels have something of it.
        wasted: Seconds over what the machine's peaks allow; None until they were measured.
        flops, bytes: Its part of theirs, a call.
        low, high: Where `seconds` of other runs would lie, by how much these differed; NaN of fewer than three runs.

    Example:
        >>> import explorer, jax, jax.numpy as jnp
        >>> def f(x):
        ...     return jnp.sin(x) @ x
        >>> measured = explorer.profile(jax.jit(f), jnp.ones((64, 64)), runs=3)
        >>> measured.lines[0].line, measured.lines[0].text, measured.lines[0].seconds > 0
        (2, 'return jnp.sin(x) @ x', True)
    """

    file: str
    line: int
    text: str
    seconds: float
    share: float
    ops: int
    wasted: float | None
    flops: float
    bytes: float
    low: float = nan
    high: float = nan


@dataclass(frozen=True, slots=True)
class EquationTime:
    """The time of one equation of a jaxpr, a call of the profiled function.

    Args:
        name, op: The equation's, in the jaxpr of `program`: its result, and its primitive.
        module, program: The executable that it was compiled to.
        seconds: Of each kernel, the part that is linked to this equation; shared equally where several may be meant.
        share: Of the device's time, 0 to 1.
        file, line: Its place in the source; empty and 0 for none.

    Example:
        >>> import explorer, jax, jax.numpy as jnp
        >>> measured = explorer.profile(jax.jit(lambda x: jnp.sin(x) @ x), jnp.ones((64, 64)), runs=3)
        >>> sorted(time.op for time in measured.equations)
        ['dot_general', 'sin']
    """

    name: str
    op: str
    module: str
    program: int
    seconds: float
    share: float
    file: str
    line: int


class OpPart(NamedTuple):
    """The part of an op's seconds that comes from one stack and one scope; `op` is its index in the profile's `ops`.

    Where a program computes gradients, the scope begins with its phase: `forward`, `backward` or `update`.

    Example:
        >>> import explorer, jax, jax.numpy as jnp
        >>> measured = explorer.profile(jax.jit(lambda x: jnp.sin(x) @ x), jnp.ones((64, 64)), runs=3)
        >>> part = measured.op_parts[0]
        >>> measured.ops[part.op].name != "", part.seconds > 0
        (True, True)
    """

    op: int
    seconds: float
    stack: tuple[Frame, ...]
    scope: str
