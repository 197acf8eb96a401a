"""A function can't be traced, compiled, padded or transformed."""

from __future__ import annotations

from typing import Any

from explorer.errors.base import ExplorerError


class ArgumentsError(ExplorerError, TypeError):
    """The arguments given to explore(), compile(), sweep() or diff() do not fit their signature.

    What to do:
        Pass what the function takes: the same arguments as for a call.

    Example:
        >>> import explorer
        >>> def f(x):
        ...     return x * 2
        >>> explorer.explore(f)
        Traceback (most recent call last):
            ...
        explorer.errors.functions.ArgumentsError: f(x) can't take these arguments: missing a required argument:
            'x'.
          given: 0 by position.
          Hint: pass them as in a call: explore(f, x, y=1).
    """


class ChangedFunctionError(ExplorerError, ValueError):
    """An executable needs its function again, for another shape or a derivative, and what that reads has changed.

    What to do:
        Compile anew after what the function reads has changed, or pass it as an argument.

    Example:
        >>> import explorer, jax, jax.numpy as jnp
        >>> rate = [2.0]
        >>> @jax.custom_jvp
        ... def scaled(x):
        ...     return x * 2.0
        >>> @scaled.defjvp
        ... def rule(primals, tangents):
        ...     return primals[0] * 2.0, tangents[0] * rate[0]
        >>> exe = explorer.compile(scaled, args=[explorer.InputInfo(((1, 4, 8),), "float32")])
        >>> slope = jax.grad(lambda x: exe(x).sum())
        >>> slope(jnp.ones(3)).tolist()
        [2.0, 2.0, 2.0]
        >>> rate[0] = 7.0
        >>> try:
        ...     slope(jnp.ones(5))
        ... except explorer.ChangedFunctionError as error:
        ...     print(error)
        scaled gives another program now than when it was compiled: what its Python reads has changed.
          at  <doctest ...>, line 3:   return primals[0] * 2.0, tangents[0] * rate[0]
          it was  f32[4] = mul f32[4] 2.0:f32[]
          it is   f32[4] = mul f32[4] 7.0:f32[]
          called at  <doctest ...>, line 1:   slope = jax.grad(lambda x: exe(x).sum())
          Hint: compile it again for today's values, or give what changes as an input.
    """


class ExploreError(ExplorerError):
    """Tracing, lowering or compiling the user's function failed; the cause is their own error.

    Args:
        capture: The `Capture` of the steps that worked. (This file is below the model, and can't name its types.)

    What to do:
        Mend the cause, which is `__cause__`; `.capture` has the stages before it, to look at.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> def f(x):
        ...     return x + jnp.ones(3)
        >>> try:
        ...     explorer.explore(f, jnp.ones(2))
        ... except explorer.ExploreError as error:
        ...     print(type(error.__cause__).__name__, [stage.name for stage in error.capture.stages])
        TypeError []
    """

    def __init__(self, message: str, capture: Any) -> None:
        super().__init__(message)
        self.capture = capture


class TracedValueError(ExploreError, TypeError):
    """The user's function asks for the value of something that has none while it is traced: `if x > 0`, `float(x)`.

    What to do:
        Compute it with arrays: `jnp.where`, `lax.cond`, `lax.while_loop`; or make the argument static.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> def f(x):
        ...     return x if x.sum() > 0 else -x
        >>> explorer.explore(f, jnp.ones(2))
        Traceback (most recent call last):
            ...
        explorer.errors.functions.TracedValueError: f could not be explored: `… if x.sum() > 0 else …` needs a
            value, but while tracing `x.sum() > 0` has none yet (bool[]).
          at  <doctest ...>, line 2:   return x if x.sum() > 0 else -x
                                                                   ^^^^^^^^^^^
          from  argument `x` of f
          Hint: jnp.where(x.sum() > 0, a, b) chooses between values,
                jax.lax.cond(x.sum() > 0, f, g, x) between computations.
    """


class NotCallableError(ExplorerError, TypeError):
    """A function was expected.

    What to do:
        Pass the function, not what it returns: `explore(f, x)`, not `explore(f(x))`.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> explorer.explore(jnp.sin(1.0))
        Traceback (most recent call last):
            ...
        explorer.errors.functions.NotCallableError: explore takes a function and its arguments; it got
            ArrayImpl. Hint: write explore(f, x), not explore(f(x)).
    """


class OutputError(ExplorerError, TypeError):
    """A function to compile returns something that is no array.

    What to do:
        Return arrays alone, or trees of them; what else there is the caller can make of its own.

    Example:
        >>> import explorer
        >>> try:
        ...     explorer.compile(lambda x: (x, "done"), args=[explorer.InputInfo((4,), "float32")])
        ... except explorer.OutputError as error:
        ...     print(error)
        the function returns 'done' as `result[1]`; only arrays can be returned.
          Hint: return arrays, and keep the rest outside the function.
    """


class PaddingError(ExplorerError, ValueError):
    """A function can't be padded, and `compile` was to do nothing else.

    What to do:
        Follow the hint at the line, or let sizes have programs of their own: `dynamic="auto"`.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> batch = explorer.NamedDimension("batch", 1, 4, 8)
        >>> def smallest(x):
        ...     return jnp.linalg.svd(x, compute_uv=False)[-1]
        >>> matrix = explorer.InputInfo((batch, batch), "float32")
        >>> explorer.compile(smallest, args=[matrix], dynamic="pad")
        Traceback (most recent call last):
            ...
        explorer.errors.functions.PaddingError: smallest can't be padded: 1 equation is in the way.
          at  <doctest ...>, line 2:   return jnp.linalg.svd(x, compute_uv=False)[-1]
            `svd` along a padded axis: f32[batch] = svd f32[batch,batch]
          called at  <doctest ...>, line 1:   explorer.compile(smallest, args=[matrix], dynamic="pad")
          Hint: pad to a fixed size, or keep it out of the function; dynamic="auto" has a binary for each size
              instead, and its .dynamic_report lists all equations.
    """


class RecompilationError(ExplorerError, AssertionError):
    """A guard saw more compiles than it allows; `.events` has the `Event`s of the calls that were too many.

    What to do:
        `.events` has what compiled, and the message what changed; pad, mark static, or compile for a range.

    Example:
        >>> import explorer, jax, jax.numpy as jnp
        >>> double = jax.jit(lambda x: x * 2)
        >>> xs = jnp.ones(3), jnp.ones(4)
        >>> with explorer.max_compiles(double, 1):
        ...     _ = [double(x) for x in xs]
        Traceback (most recent call last):
            ...
        explorer.errors.functions.RecompilationError: <lambda> compiled 2 times; 1 is allowed here.
          [<lambda>/1]  the first call of `<lambda>`
              took ... ms
              called at  <doctest ...>, line 2:   _ = [double(x) for x in xs]
          [<lambda>/2]  x.shape[0]: 3 → 4 (shape)
              took ... ms
              called at  <doctest ...>, line 2:   _ = [double(x) for x in xs]
              Fix: x = jnp.pad(x, [(0, -x.shape[0] % 8)])  # 1 size for 3 … 4; mask what is added
                   # or a few programs for all sizes, where padding is proven exact (else one for each):
                       ex.compile(f, args=[InputInfo((NamedDimension("batch", 3, 4, 4),), jnp.float32)],
                       dynamic="auto")
    """

    def __init__(self, message: str, events: tuple[Any, ...] = ()) -> None:
        super().__init__(message)
        self.events = events


class TransformationError(ExplorerError, TypeError):
    """An executable from a file is under a transformation that it can't follow: it has no Python to trace anew.

    What to do:
        Save it with what is needed, `exe.save(path, derivatives=1)`, or compile the function itself.

    Example:
        >>> import explorer, jax, jax.numpy as jnp
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     path = Path(folder, "sin.explorer")
        ...     explorer.compile(jnp.sin, args=[explorer.InputInfo((4,), "float32")]).save(path)
        ...     exe = explorer.Executable.load(path)
        >>> try:
        ...     jax.vmap(exe)(jnp.ones((2, 4)))
        ... except explorer.TransformationError as error:
        ...     print(error)
        sin came from a file, and can't be transformed so: Batching rule for 'call_exported' not implemented.
          called at  <doctest ...>, line 2:   jax.vmap(exe)(jnp.ones((2, 4)))
          Hint: jax.vmap and forward-mode derivatives need the function that it was compiled from.
    """
