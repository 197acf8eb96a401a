"""An executable was called with something that it was not compiled for."""

from __future__ import annotations

from explorer.errors.base import ExplorerError


class InputError(ExplorerError):
    """An executable was called with something that it was not compiled for.

    What to do:
        Call the executable with what it was compiled for: `exe.input_infos` says what that is.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> exe = explorer.compile(lambda x: x * 2, args=[explorer.InputInfo((4,), "float32")])
        >>> try:
        ...     exe(jnp.ones(5))
        ... except explorer.InputError:
        ...     print(exe.input_infos)
        {'x': InputInfo((4,), float32)}
    """


class DonatedInputError(InputError, RuntimeError):
    """An array that was donated to an earlier call, which may have overwritten it.

    What to do:
        Use what the call returned in its place, or pass a copy, or don't donate.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> exe = explorer.compile(lambda x: x + 1, args=[explorer.InputInfo((4,), "float32")], donate=["x"])
        >>> x = jnp.ones(4)
        >>> _ = exe(x)
        >>> exe(x)
        Traceback (most recent call last):
            ...
        explorer.errors.inputs.DonatedInputError: input `x` of <lambda> was donated to an earlier call, which
            may have overwritten it.
          called at  <doctest ...>, line 1:   exe(x)
          Hint: use what that call returned, or donate a copy: x.copy().
    """


class DuplicateArgumentError(InputError, TypeError):
    """One argument was given by position and by name.

    What to do:
        Pass it once.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> exe = explorer.compile(lambda x: x * 2, args=[explorer.InputInfo((4,), "float32")])
        >>> exe(jnp.ones(4), x=jnp.ones(4))
        Traceback (most recent call last):
            ...
        explorer.errors.inputs.DuplicateArgumentError: argument `x` is given twice, by position and by name.
          expected: (x)
          called at  <doctest ...>, line 1:   exe(jnp.ones(4), x=jnp.ones(4))
          Hint: give it once.
    """


class ExtraArgumentError(InputError, TypeError):
    """An argument too many, or one of a name that the executable doesn't have.

    What to do:
        Leave it out; `exe.input_infos` has the names that there are.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> exe = explorer.compile(lambda x: x * 2, args=[explorer.InputInfo((4,), "float32")])
        >>> exe(jnp.ones(4), scale=2.0)
        Traceback (most recent call last):
            ...
        explorer.errors.inputs.ExtraArgumentError: argument `scale` is none of this executable's.
          expected: (x)
          called at  <doctest ...>, line 1:   exe(jnp.ones(4), scale=2.0)
          Hint: what was constant when compiling is no argument any more.
    """


class InputDeviceError(InputError, ValueError):
    """An array on another device, or spread over others, than the executable was compiled for.

    What to do:
        Move it there with `jax.device_put`, or compile with `InputInfo(…, sharding=…)`.

    Example:
        >>> import explorer, jax, jax.numpy as jnp
        >>> here, there, *_ = map(jax.sharding.SingleDeviceSharding, jax.devices())  # doctest: +SKIP
        >>> pair = explorer.InputInfo((2,), "float32", sharding=here)  # doctest: +SKIP
        >>> exe = explorer.compile(lambda x: x + 1, args=[pair])  # doctest: +SKIP
        >>> exe(jax.device_put(jnp.ones(2), there))  # doctest: +SKIP
        Traceback (most recent call last):
            ...
        explorer.errors.inputs.InputDeviceError: input `x` is on cpu:1, spread as SingleDeviceSharding(...).
          compiled for cpu:0, spread as SingleDeviceSharding(...)
          called at  <doctest ...>, line 1:   exe(jax.device_put(jnp.ones(2), there))
          Hint: jax.device_put(x, exe.input_infos['x'].sharding).
    """


class InputDtypeError(InputError, TypeError):
    """An array of another dtype.

    What to do:
        Convert it: `x.astype(jnp.float32)`; or compile for that dtype too.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> exe = explorer.compile(lambda x: x * 2, args=[explorer.InputInfo((4,), "float32")])
        >>> exe(jnp.ones(4, jnp.int32))
        Traceback (most recent call last):
            ...
        explorer.errors.inputs.InputDtypeError: input `x` has dtype int32, not float32.
          compiled for float32[4]
          called at  <doctest ...>, line 1:   exe(jnp.ones(4, jnp.int32))
          Hint: convert it, x.astype('float32'), or compile for int32.
    """


class InputRankError(InputError, ValueError):
    """An array of another number of dimensions.

    What to do:
        Reshape it, or add the axis: `x[None]`.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> exe = explorer.compile(lambda x: x * 2, args=[explorer.InputInfo((4,), "float32")])
        >>> exe(jnp.ones((4, 1)))
        Traceback (most recent call last):
            ...
        explorer.errors.inputs.InputRankError: input `x` has rank 2, shape (4, 1), not rank 1.
          compiled for float32[4]
          called at  <doctest ...>, line 1:   exe(jnp.ones((4, 1)))
          Hint: reshape it, or compile for this rank.
    """


class InputShapeError(InputError, ValueError):
    """An array of another size.

    What to do:
        Compile for a range of sizes, `NamedDimension("batch", 1, 8, 64)`, or pad or split the array.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> exe = explorer.compile(lambda x: x * 2, args=[explorer.InputInfo(((1, 4, 8),), "float32")])
        >>> exe(jnp.ones(9))
        Traceback (most recent call last):
            ...
        explorer.errors.inputs.InputShapeError: input `x` has shape (9,), outside the range this executable was
            compiled for.
          dimension 0 is 9; compiled for 1 ≤ dimension 0 ≤ 8 (optimised for 4)
          called at  <doctest ...>, line 1:   exe(jnp.ones(9))
          Hint: compile with (1, 4, 9), or split it.
    """


class InputStructureError(InputError, ValueError):
    """A list, dict or object lacks what the executable was compiled for.

    What to do:
        Pass lists, dicts and objects with the keys and lengths that were compiled for.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> exe = explorer.compile(lambda x: x["a"], args=[{"a": explorer.InputInfo((4,), "float32")}])
        >>> exe({"b": jnp.ones(4)})
        Traceback (most recent call last):
            ...
        explorer.errors.inputs.InputStructureError: input `x.a` is not there: dict has nothing at ['a'].
          called at  <doctest ...>, line 1:   exe({"b": jnp.ones(4)})
          Hint: give `x` the structure it was compiled with.
    """


class MissingArgumentError(InputError, TypeError):
    """An argument is not there.

    What to do:
        Pass it, by position or by name.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> exe = explorer.compile(lambda x: x * 2, args=[explorer.InputInfo((4,), "float32")])
        >>> exe()
        Traceback (most recent call last):
            ...
        explorer.errors.inputs.MissingArgumentError: argument `x` is missing.
          expected: (x)
          called at  <doctest ...>, line 1:   exe()
          Hint: give every argument listed.
    """


class NotAnArrayError(InputError, TypeError):
    """An array was expected.

    What to do:
        Make an array of it: `jnp.asarray(x)`.

    Example:
        >>> import explorer
        >>> exe = explorer.compile(lambda x: x * 2, args=[explorer.InputInfo((4,), "float32")])
        >>> exe("four")
        Traceback (most recent call last):
            ...
        explorer.errors.inputs.NotAnArrayError: input `x` is no array but str.
          compiled for float32[4]
          called at  <doctest ...>, line 1:   exe("four")
          Hint: jnp.asarray(value, 'float32').
    """
