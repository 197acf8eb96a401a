"""What jit() captures, and its static arguments."""

from __future__ import annotations

from explorer.errors.base import ExplorerError


class LeakedStateError(ExplorerError, ValueError):
    """An outer trace doesn't capture some state: it would be a constant there, or be left with a traced value.

    What to do:
        Compile the outer function with `explorer.jit` and the same state, in place of `jax.jit`.

    Example:
        >>> import explorer, jax, jax.numpy as jnp
        >>> state = [jnp.zeros(())]
        >>> @explorer.jit(inputs=state, outputs=state)
        ... def count(x):
        ...     state[0] = state[0] + x
        ...     return state[0]
        >>> try:
        ...     jax.jit(count)(1.0)
        ... except explorer.LeakedStateError as error:
        ...     print(error)
        count reads its state (`[0]`) while another function is traced, which would bake in today's value for
            all its calls.
          called at  <doctest ...>, line 2:   jax.jit(count)(1.0)
          Hint: ex.jit(outer, inputs=state) captures it there too; or give the state as an argument.
    """


class StateError(ExplorerError, TypeError):
    """`inputs` or `outputs` of jit() is nothing whose arrays could be captured.

    What to do:
        Capture a list, a dict or an object whose attributes are arrays.

    Example:
        >>> import explorer
        >>> explorer.jit(lambda x: x, inputs=3)
        Traceback (most recent call last):
            ...
        explorer.errors.state.StateError: inputs is int, which holds no arrays; allowed is a list, a dict, or an
            object with attributes, such as a module.
          called at  <doctest ...>, line 1:   explorer.jit(lambda x: x, inputs=3)
          Hint: jit(f, inputs=state, outputs=state).
    """


class StaticArgumentError(ExplorerError, ValueError):
    """A static argument of jit() has no hash, or can't be compared.

    What to do:
        Give a tuple for a list, or a class with `__eq__` and `__hash__` by value (a frozen dataclass has them).

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> @explorer.jit(static_argnames=("shape",))
        ... def zeros(x, shape):
        ...     return jnp.zeros(shape) + x
        >>> zeros(1.0, shape=[2, 3])
        Traceback (most recent call last):
            ...
        explorer.errors.state.StaticArgumentError: static argument `shape` of zeros is list, which has no hash:
            jit keeps a program for each value, and finds it by hash and ==.
          called at  <doctest ...>, line 1:   zeros(1.0, shape=[2, 3])
          Hint: give tuple(shape).
    """
