"""Every error that Explorer raises.

ExplorerError                  base of all errors
├── ArchiveError               a file holds no readable executable (also a ValueError)
├── ArgumentsError             arguments don't fit the signature of explore(), compile(), diff(), … (also a TypeError)
├── CaptureFileError           a file holds no readable capture (also a ValueError)
├── ChangedFunctionError       an executable's function changed, and has to be traced again (also a ValueError)
├── ExploreError               a step of explore() failed; `.capture` holds the steps before it
│   └── TracedValueError         the function needs the value of a traced array (also a TypeError)
├── ExpressionError            a magic got an invalid option or call (also a ValueError)
├── ForeignNodeError           a node belongs to another capture or stage (also a ValueError)
├── GoldenFileError            a file holds no readable golden record (also a ValueError)
├── HotPathsError              hot paths are on already (also a RuntimeError)
├── InputError                 an executable was called with inputs that it was not compiled for
│   ├── DonatedInputError        an input was donated to an earlier call (also a RuntimeError)
│   ├── DuplicateArgumentError   an argument is given by position and by name (also a TypeError)
│   ├── ExtraArgumentError       there is no such argument (also a TypeError)
│   ├── InputDeviceError         an input is on another device (also a ValueError)
│   ├── InputDtypeError          an input has another dtype (also a TypeError)
│   ├── InputRankError           an input has another number of dimensions (also a ValueError)
│   ├── InputShapeError          an input has another size (also a ValueError)
│   ├── InputStructureError      a list, dict or object lacks a part (also a ValueError)
│   ├── MissingArgumentError     an argument is missing (also a TypeError)
│   └── NotAnArrayError          an input is no array (also a TypeError)
├── InputInfoError             a shape or dtype is invalid (also a ValueError)
├── LeakedStateError           an outer trace doesn't capture state that is read or written (also a ValueError)
├── LedgerFileError            a file holds no readable ledger, or blocks the path of one (also a ValueError)
├── MissingCompilerError       the compiler for a target is not installed, or can't run here
├── MissingPackageError        an optional package is not installed (also an ImportError)
├── NotCallableError           a function was expected (also a TypeError)
├── NotRecordedError           a capture, dump or ledger lacks the requested data (also a LookupError)
├── OpenError                  open_hlo() got nothing that holds one module (also a ValueError)
├── OptionError                an option of compile(), lint(), time(), watch(), … is out of range (also a ValueError)
├── OutOfRangeError            there is no step or position with this number (also an IndexError)
├── OutputError                a function returns a value that is no array (also a TypeError)
├── PaddingError               compile(dynamic="pad") can't pad the function (also a ValueError)
├── ProfilerBusyError          another trace is being recorded in this process
├── QueryError                 a query of a graph's nodes can't be read (also a ValueError)
├── RecompilationError         more compiles than a guard allows (also an AssertionError)
├── ResultFileError            a file holds no readable result of this kind (also a ValueError)
├── SignalsError               a file of signals has a mistake (also a ValueError)
├── StateError                 jit() was given state without arrays (also a TypeError)
├── StaticArgumentError        a static argument of jit() can't be hashed or compared (also a ValueError)
├── TargetCompileError         the compiler for a target refused the program, ended, or reached a limit
├── TransformationError        a saved executable lacks this derivative or batching (also a TypeError)
├── UnknownNameError           no stage, node, pass, variant, … has this name (also a KeyError)
├── UnknownTargetError         `target=` names no known hardware (also a ValueError)
├── UnreadableTextError        a text is no HLO, or holds no findings (also a ValueError)
├── ViewError                  a view can't show this (also a ValueError)
└── WorkerError                the processes of `executor=` or `mcp` can't do the work (also a RuntimeError)

Every warning:

UserWarning
├── AmbiguousOptionWarning     a keyword is both an option and a parameter of the function, which gets it
├── ProcessWarning             a process compiles another program than the first process: both may hang
├── RecompilationWarning       a function is traced or compiled again and again
├── TracedPerShapeWarning      a function can't be traced for all its shapes at once
├── UnknownSignalWarning       a signal is missing from the file of signals, which has a similar name
└── UnwrittenStateWarning      a function changed state that is captured only as inputs: the change is dropped
"""

from __future__ import annotations

from typing import Any


class ExplorerError(Exception):
    """Base of all errors that Explorer raises on purpose.

    What to do:
        Catch it to handle all of Explorer's errors. Each is also of a fitting builtin kind, such as TypeError.

    Example:
        >>> import explorer
        >>> try:
        ...     explorer.explore(3)
        ... except explorer.ExplorerError as error:
        ...     print(error)
        explore takes a function and its arguments; it got int. Hint: write explore(f, x), not explore(f(x)).
    """


class ArgumentsError(ExplorerError, TypeError):
    """The arguments for explore(), compile(), sweep() or diff() do not fit the signature.

    What to do:
        Pass the same arguments as in a call of the function.

    Example:
        >>> import explorer
        >>> def f(x):
        ...     return x * 2
        >>> explorer.explore(f)
        Traceback (most recent call last):
            ...
        explorer.errors.ArgumentsError: f(x) can't take these arguments: missing a required argument:
            'x'.
          given: 0 by position.
          Hint: pass them as in a call: explore(f, x, y=1).
    """


class ChangedFunctionError(ExplorerError, ValueError):
    """An executable must trace its function again, for another shape or a derivative, and the result differs.

    What to do:
        Compile again after a change of anything the function reads, or pass the changing value as an argument.

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
        ... except explorer.errors.ChangedFunctionError as error:
        ...     print(error)
        scaled gives another program now than when it was compiled: what its Python reads has changed.
          at  <doctest ...>, line 3:   return primals[0] * 2.0, tangents[0] * rate[0]
          it was  f32[4] = mul f32[4] 2.0:f32[]
          it is   f32[4] = mul f32[4] 7.0:f32[]
          called at  <doctest ...>, line 1:   slope = jax.grad(lambda x: exe(x).sum())
          Hint: compile it again for today's values, or give what changes as an input.
    """


class ExploreError(ExplorerError):
    """Tracing, lowering or compiling the user's function failed.

    Args:
        capture: The `Capture` of the steps that worked. (This file is below the model, and can't name its types.)

    What to do:
        Fix the cause, which is `__cause__`. `.capture` has the stages before the failure.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> def f(x):
        ...     return x + jnp.ones(3)
        >>> try:
        ...     explorer.explore(f, jnp.ones(2))
        ... except explorer.errors.ExploreError as error:
        ...     print(type(error.__cause__).__name__, [stage.name for stage in error.capture.stages])
        TypeError []
    """

    def __init__(self, message: str, capture: Any) -> None:
        super().__init__(message)
        self.capture = capture


class TracedValueError(ExploreError, TypeError):
    """The function needs the value of a traced array, as in `if x > 0` or `float(x)`.

    What to do:
        Compute it with arrays: `jnp.where`, `lax.cond`, `lax.while_loop`; or make the argument static.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> def f(x):
        ...     return x if x.sum() > 0 else -x
        >>> explorer.explore(f, jnp.ones(2))
        Traceback (most recent call last):
            ...
        explorer.errors.TracedValueError: f could not be explored: `… if x.sum() > 0 else …` needs a
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
        explorer.errors.NotCallableError: explore takes a function and its arguments; it got
            ArrayImpl. Hint: write explore(f, x), not explore(f(x)).
    """


class OutputError(ExplorerError, TypeError):
    """A function to compile returns a value that is no array.

    What to do:
        Return only arrays, or trees of arrays; keep other values outside the function.

    Example:
        >>> import explorer
        >>> try:
        ...     explorer.compile(lambda x: (x, "done"), args=[explorer.InputInfo((4,), "float32")])
        ... except explorer.errors.OutputError as error:
        ...     print(error)
        the function returns 'done' as `result[1]`; only arrays can be returned.
          Hint: return arrays, and keep the rest outside the function.
    """


class PaddingError(ExplorerError, ValueError):
    """`compile(dynamic="pad")` got a function that can't be padded.

    What to do:
        Follow the hint at the line, or allow one program per size: `dynamic="auto"`.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> batch = explorer.NamedDimension("batch", 1, 4, 8)
        >>> def smallest(x):
        ...     return jnp.linalg.svd(x, compute_uv=False)[-1]
        >>> matrix = explorer.InputInfo((batch, batch), "float32")
        >>> explorer.compile(smallest, args=[matrix], dynamic="pad")
        Traceback (most recent call last):
            ...
        explorer.errors.PaddingError: smallest can't be padded: 1 equation is in the way.
          at  <doctest ...>, line 2:   return jnp.linalg.svd(x, compute_uv=False)[-1]
            `svd` along a padded axis: f32[batch] = svd f32[batch,batch]
          called at  <doctest ...>, line 1:   explorer.compile(smallest, args=[matrix], dynamic="pad")
          Hint: pad to a fixed size, or keep it out of the function; dynamic="auto" compiles a binary for each size
              instead, and its .dynamic_report lists all equations.
    """


class RecompilationError(ExplorerError, AssertionError):
    """A guard saw more compiles than it allows; `.events` has the `Event`s of the extra calls.

    What to do:
        The message says what changed: pad, mark static, or compile for a range of sizes.

    Example:
        >>> import explorer, jax, jax.numpy as jnp
        >>> double = jax.jit(lambda x: x * 2)
        >>> xs = jnp.ones(3), jnp.ones(4)
        >>> with explorer.max_compiles(double, 1):
        ...     _ = [double(x) for x in xs]
        Traceback (most recent call last):
            ...
        explorer.errors.RecompilationError: <lambda> compiled 2 times; 1 is allowed here.
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
    """A saved executable is under a transformation that it lacks; it has no Python function to trace again.

    What to do:
        Save it with the derivatives you need, `exe.save(path, derivatives=1)`, or compile the function itself.

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
        ... except explorer.errors.TransformationError as error:
        ...     print(error)
        sin came from a file, and can't be transformed so: Batching rule for 'call_exported' not implemented.
          called at  <doctest ...>, line 2:   jax.vmap(exe)(jnp.ones((2, 4)))
          Hint: jax.vmap and forward-mode derivatives need the function that it was compiled from.
    """


class InputError(ExplorerError):
    """An executable was called with inputs that it was not compiled for.

    What to do:
        Pass inputs that fit `exe.input_infos`.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> exe = explorer.compile(lambda x: x * 2, args=[explorer.InputInfo((4,), "float32")])
        >>> try:
        ...     exe(jnp.ones(5))
        ... except explorer.errors.InputError:
        ...     print(exe.input_infos)
        {'x': InputInfo((4,), float32)}
    """


class DonatedInputError(InputError, RuntimeError):
    """An array was donated to an earlier call, which may have overwritten it.

    What to do:
        Use the result of that call instead, pass a copy, or don't donate.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> exe = explorer.compile(lambda x: x + 1, args=[explorer.InputInfo((4,), "float32")], donate=["x"])
        >>> x = jnp.ones(4)
        >>> _ = exe(x)
        >>> exe(x)
        Traceback (most recent call last):
            ...
        explorer.errors.DonatedInputError: input `x` of <lambda> was donated to an earlier call, which
            may have overwritten it.
          called at  <doctest ...>, line 1:   exe(x)
          Hint: use what that call returned, or donate a copy: x.copy().
    """


class DuplicateArgumentError(InputError, TypeError):
    """An argument was given by position and by name.

    What to do:
        Pass it once.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> exe = explorer.compile(lambda x: x * 2, args=[explorer.InputInfo((4,), "float32")])
        >>> exe(jnp.ones(4), x=jnp.ones(4))
        Traceback (most recent call last):
            ...
        explorer.errors.DuplicateArgumentError: argument `x` is given twice, by position and by name.
          expected: (x)
          called at  <doctest ...>, line 1:   exe(jnp.ones(4), x=jnp.ones(4))
          Hint: give it once.
    """


class ExtraArgumentError(InputError, TypeError):
    """The executable has no such argument.

    What to do:
        Leave it out; `exe.input_infos` lists the arguments.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> exe = explorer.compile(lambda x: x * 2, args=[explorer.InputInfo((4,), "float32")])
        >>> exe(jnp.ones(4), scale=2.0)
        Traceback (most recent call last):
            ...
        explorer.errors.ExtraArgumentError: unexpected argument `scale`.
          expected: (x)
          called at  <doctest ...>, line 1:   exe(jnp.ones(4), scale=2.0)
          Hint: values that were constants of the compile are no longer arguments.
    """


class InputDeviceError(InputError, ValueError):
    """An array is on other devices than the executable was compiled for, or sharded differently.

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
        explorer.errors.InputDeviceError: input `x` is on cpu:1, spread as SingleDeviceSharding(...).
          compiled for cpu:0, spread as SingleDeviceSharding(...)
          called at  <doctest ...>, line 1:   exe(jax.device_put(jnp.ones(2), there))
          Hint: jax.device_put(x, exe.input_infos['x'].sharding).
    """


class InputDtypeError(InputError, TypeError):
    """An array has another dtype than the executable was compiled for.

    What to do:
        Convert it, `x.astype(jnp.float32)`, or compile for that dtype too.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> exe = explorer.compile(lambda x: x * 2, args=[explorer.InputInfo((4,), "float32")])
        >>> exe(jnp.ones(4, jnp.int32))
        Traceback (most recent call last):
            ...
        explorer.errors.InputDtypeError: input `x` has dtype int32, not float32.
          compiled for float32[4]
          called at  <doctest ...>, line 1:   exe(jnp.ones(4, jnp.int32))
          Hint: convert it, x.astype('float32'), or compile for int32.
    """


class InputRankError(InputError, ValueError):
    """An array has another number of dimensions than the executable was compiled for.

    What to do:
        Reshape it, or add the axis: `x[None]`.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> exe = explorer.compile(lambda x: x * 2, args=[explorer.InputInfo((4,), "float32")])
        >>> exe(jnp.ones((4, 1)))
        Traceback (most recent call last):
            ...
        explorer.errors.InputRankError: input `x` has rank 2, shape (4, 1), not rank 1.
          compiled for float32[4]
          called at  <doctest ...>, line 1:   exe(jnp.ones((4, 1)))
          Hint: reshape it, or compile for this rank.
    """


class InputShapeError(InputError, ValueError):
    """An array has a size that the executable was not compiled for.

    What to do:
        Compile for a range of sizes, `NamedDimension("batch", 1, 8, 64)`, or pad or split the array.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> exe = explorer.compile(lambda x: x * 2, args=[explorer.InputInfo(((1, 4, 8),), "float32")])
        >>> exe(jnp.ones(9))
        Traceback (most recent call last):
            ...
        explorer.errors.InputShapeError: input `x` has shape (9,), outside the range this executable was
            compiled for.
          dimension 0 is 9; compiled for 1 ≤ dimension 0 ≤ 8 (optimised for 4)
          called at  <doctest ...>, line 1:   exe(jnp.ones(9))
          Hint: compile with (1, 4, 9), or split it.
    """


class InputStructureError(InputError, ValueError):
    """A list, dict or object lacks a part that the executable was compiled for.

    What to do:
        Pass lists, dicts and objects with the same keys and lengths as when compiling.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> exe = explorer.compile(lambda x: x["a"], args=[{"a": explorer.InputInfo((4,), "float32")}])
        >>> exe({"b": jnp.ones(4)})
        Traceback (most recent call last):
            ...
        explorer.errors.InputStructureError: input `x.a` is not there: dict has nothing at ['a'].
          called at  <doctest ...>, line 1:   exe({"b": jnp.ones(4)})
          Hint: give `x` the structure it was compiled with.
    """


class MissingArgumentError(InputError, TypeError):
    """An argument is missing.

    What to do:
        Pass it, by position or by name.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> exe = explorer.compile(lambda x: x * 2, args=[explorer.InputInfo((4,), "float32")])
        >>> exe()
        Traceback (most recent call last):
            ...
        explorer.errors.MissingArgumentError: argument `x` is missing.
          expected: (x)
          called at  <doctest ...>, line 1:   exe()
          Hint: give every argument listed.
    """


class NotAnArrayError(InputError, TypeError):
    """An input is no array.

    What to do:
        Convert it: `jnp.asarray(x)`.

    Example:
        >>> import explorer
        >>> exe = explorer.compile(lambda x: x * 2, args=[explorer.InputInfo((4,), "float32")])
        >>> exe("four")
        Traceback (most recent call last):
            ...
        explorer.errors.NotAnArrayError: input `x` is no array but str.
          compiled for float32[4]
          called at  <doctest ...>, line 1:   exe("four")
          Hint: jnp.asarray(value, 'float32').
    """


class LeakedStateError(ExplorerError, ValueError):
    """An outer trace doesn't capture state: it would bake in a constant, or leave a traced value in the state.

    What to do:
        Compile the outer function with `explorer.jit` and the same state instead of `jax.jit`.

    Example:
        >>> import explorer, jax, jax.numpy as jnp
        >>> state = [jnp.zeros(())]
        >>> @explorer.jit(inputs=state, outputs=state)
        ... def count(x):
        ...     state[0] = state[0] + x
        ...     return state[0]
        >>> try:
        ...     jax.jit(count)(1.0)
        ... except explorer.errors.LeakedStateError as error:
        ...     print(error)
        count reads its state (`[0]`) while another function is traced, which would bake in today's value for
            all its calls.
          called at  <doctest ...>, line 2:   jax.jit(count)(1.0)
          Hint: ex.jit(outer, inputs=state) captures it there too; or give the state as an argument.
    """


class StateError(ExplorerError, TypeError):
    """`inputs` or `outputs` of jit() hold no arrays to capture.

    What to do:
        Capture a list, a dict or an object whose attributes are arrays.

    Example:
        >>> import explorer
        >>> explorer.jit(lambda x: x, inputs=3)
        Traceback (most recent call last):
            ...
        explorer.errors.StateError: inputs is int, which holds no arrays; allowed is a list, a dict, or an
            object with attributes, such as a module.
          called at  <doctest ...>, line 1:   explorer.jit(lambda x: x, inputs=3)
          Hint: jit(f, inputs=state, outputs=state).
    """


class StaticArgumentError(ExplorerError, ValueError):
    """A static argument of jit() has no hash, or can't be compared.

    What to do:
        Pass a tuple instead of a list, or a class with `__eq__` and `__hash__` by value, such as a frozen dataclass.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> @explorer.jit(static_argnames=("shape",))
        ... def zeros(x, shape):
        ...     return jnp.zeros(shape) + x
        >>> zeros(1.0, shape=[2, 3])
        Traceback (most recent call last):
            ...
        explorer.errors.StaticArgumentError: static argument `shape` of zeros is list, which has no hash:
            jit keeps a program for each value, and finds it by hash and ==.
          called at  <doctest ...>, line 1:   zeros(1.0, shape=[2, 3])
          Hint: give tuple(shape).
    """


class ExpressionError(ExplorerError, ValueError):
    """A magic got an option or an expression that it can't take.

    What to do:
        Write the options before one call: `%explore --html page.html f(x)`.

    Example:
        >>> from IPython.core.interactiveshell import InteractiveShell
        >>> import explorer
        >>> shell = InteractiveShell.instance()
        >>> explorer.load_ipython_extension(shell)
        >>> shell.run_line_magic("explore", "1 + 1")
        Traceback (most recent call last):
            ...
        explorer.errors.ExpressionError: %explore takes one call.
          given:  1 + 1
          Hint: write the call as ever, %explore f(x, y=1); it is compiled instead of run.
    """


class ForeignNodeError(ExplorerError, ValueError):
    """A node belongs to another capture, or to a stage for which there is no answer.

    What to do:
        Take the node from a stage of the same capture: `capture.jaxpr.graph` for a fate.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> capture = explorer.explore(jnp.sin, jnp.ones(2))
        >>> capture.fate(next(iter(capture.hlo.graph.nodes)))
        Traceback (most recent call last):
            ...
        explorer.errors.ForeignNodeError: param_0 is no node of this capture's jaxpr or stablehlo
            stage.
    """


class InputInfoError(ExplorerError, ValueError):
    """A shape or dtype is invalid.

    What to do:
        A dimension is a number from 0 on, a range (smallest, usual, largest) or a `NamedDimension`; a dtype is one of
        JAX's.

    Example:
        >>> import explorer
        >>> explorer.InputInfo((4, -1), "float32")
        Traceback (most recent call last):
            ...
        explorer.errors.InputInfoError: dimension 1 of a shape is -1; allowed are an int of at least 0,
            below 2**63, (min, opt, max), or a NamedDimension.
          Hint: InputInfo(((1, 8, 64), 128), jnp.float32) takes 1 to 64 rows and is fastest for 8.
    """


class NotRecordedError(ExplorerError, LookupError):
    """A capture, a dump or a ledger lacks the requested data.

    What to do:
        Record it first: the message says how.

    Example:
        >>> import explorer
        >>> explorer.Ledger().families("step")
        Traceback (most recent call last):
            ...
        explorer.errors.NotRecordedError: the ledger has no function 'step': nothing was compiled while
            it watched.
          Hint: give a function's name, the function, or the id of one of its compiles, such as '[step/0]'.
    """


class OpenError(ExplorerError, ValueError):
    """open_hlo() got something that can't be opened, is empty, or holds no module or several.

    What to do:
        Pass the text of a module, a file with one, or a folder that XLA dumped with `--xla_dump_to`.

    Example:
        >>> import explorer
        >>> explorer.open_hlo("")
        Traceback (most recent call last):
            ...
        explorer.errors.OpenError: the text is empty.
    """


class OptionError(ExplorerError, ValueError):
    """An option of compile(), lint(), time(), sweep(), watch(), … is out of range, or one in pyproject.toml.

    What to do:
        Use one of the values in the message.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> explorer.time(jnp.sin, jnp.ones(2), seconds=-1)
        Traceback (most recent call last):
            ...
        explorer.errors.OptionError: seconds is -1; allowed is a number above 0.
          Hint: seconds=1 is the default; longer is more precise.
    """


class OutOfRangeError(ExplorerError, IndexError):
    """There is no step or position with this number.

    What to do:
        Use a smaller number; the message says how many there are.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> explorer.explore(jnp.sin, jnp.ones(2)).live_memory.at(1000)
        Traceback (most recent call last):
            ...
        explorer.errors.OutOfRangeError: step 1000 is outside of this schedule; allowed are 0 to 1.
    """


class QueryError(ExplorerError, ValueError):
    """A query of a graph's nodes can't be read, or uses an unknown field.

    What to do:
        `op:dot and flops>1e6`: fields, comparisons, `and`, `or`, `not`; the message lists the fields.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> explorer.explore(jnp.sin, jnp.ones(2)).hlo.graph.where("flops>")
        Traceback (most recent call last):
            ...
        explorer.errors.QueryError: this query can't be read: a value should follow `flops>`.
          flops>
                ^
          Hint: write `op:dot`, `bytes > 1MB and op == "copy"`, `line:12`, `/regex/`.
    """


class UnknownNameError(ExplorerError, KeyError):
    """There is no stage, node, pass or variant with this name; the message lists names that exist.

    What to do:
        Use one of the names in the message.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> explorer.explore(jnp.sin, jnp.ones(2)).stage("llvm")
        Traceback (most recent call last):
            ...
        explorer.errors.UnknownNameError: this capture has no stage 'llvm'; it has: jaxpr, stablehlo,
            hlo
    """

    __str__ = Exception.__str__  # a KeyError would show the repr of its message


class UnreadableTextError(ExplorerError, ValueError):
    """A text holds no module of the expected kind, or no findings.

    What to do:
        Pass the text of one module as XLA prints it, from `HloModule` on; for findings, the output of `to_json`.

    Example:
        >>> import explorer
        >>> explorer.Findings.from_json("something else")
        Traceback (most recent call last):
            ...
        explorer.errors.UnreadableTextError: this text holds no findings: JSONDecodeError: Expecting
            value: line 1 column 1 (char 0).
          Hint: Findings.to_json() writes them.
    """


class ViewError(ExplorerError, ValueError):
    """A view can't show this.

    What to do:
        The parts of a bookmark are texts, its notes are `Note`s, and it selects nodes of its capture.

    Example:
        >>> import explorer
        >>> explorer.Bookmark(notes=("why f32?",))
        Traceback (most recent call last):
            ...
        explorer.errors.ViewError: notes are explorer.Note(on, text); got 'why f32?'.
    """


class ArchiveError(ExplorerError, ValueError):
    """An executable can't be saved, or a file holds no executable that this Explorer can read.

    What to do:
        Save the executable again with this Explorer and this JAX; copy a truncated file again.

    Example:
        >>> import explorer
        >>> explorer.Executable.load(explorer.__file__)  # a file of something else
        Traceback (most recent call last):
            ...
        explorer.errors.ArchiveError: __init__.py is no executable: it starts with b'...'.
          Hint: Executable.save writes one.
    """


class CaptureFileError(ExplorerError, ValueError):
    """A file or bytes hold no capture that this Explorer can read.

    What to do:
        Save the capture again with this Explorer. `Executable.load` opens executables, `open_hlo` opens HLO.

    Example:
        >>> import explorer
        >>> explorer.load(explorer.__file__)  # a file of something else
        Traceback (most recent call last):
            ...
        explorer.errors.CaptureFileError: this is no capture: it starts with b'...', a capture with b'EXPLORER'.
            Hint: captures are what Capture.save(path) writes.
    """


class GoldenFileError(ExplorerError, ValueError):
    """A golden file can't be read, or has invalid values.

    What to do:
        Write it again with `python -m explorer record` or `check --update`, also after a merge conflict.

    Example:
        >>> import explorer
        >>> explorer.Golden.load(explorer.__file__)  # a file of something else
        Traceback (most recent call last):
            ...
        explorer.errors.GoldenFileError: ...__init__.py: it is no TOML: ...
    """


class LedgerFileError(ExplorerError, ValueError):
    """A file holds no ledger that this Explorer can read, or blocks the path for one.

    What to do:
        Save the ledger again, under another name if the path is taken.

    Example:
        >>> import explorer
        >>> explorer.Ledger.load(explorer.__file__)  # a file of something else
        Traceback (most recent call last):
            ...
        explorer.errors.LedgerFileError: this is no ledger: it starts with '...', a ledger with
            '{"explorer":"ledger"'. Hint: ledgers are what Ledger.save(path) writes.
    """


class ResultFileError(ExplorerError, ValueError):
    """A file holds no measured result of this kind that this Explorer can read.

    What to do:
        Load the result with the class that saved it, or save it again.

    Example:
        >>> import explorer
        >>> explorer.Timing.load(explorer.__file__)  # a file of something else
        Traceback (most recent call last):
            ...
        explorer.errors.ResultFileError: this is no saved result: it starts with b'...'. Hint: results are
            what save writes.
    """


class SignalsError(ExplorerError, ValueError):
    """A file of signals can't be read, has a mistake, or asks for something impossible here.

    What to do:
        Fix the line in the message.

    Example:
        >>> import explorer
        >>> from explorer.files.signals import read_signals
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     path = Path(folder, "signals.yaml")
        ...     _ = path.write_text("forward: {shard: 4}")
        ...     read_signals(path)  # what EXPLORER_CONFIG=signals.yaml does
        Traceback (most recent call last):
            ...
        explorer.errors.SignalsError: .../signals.yaml, line 1: 4 is given; expected is a mapping of
            axis, workers.
    """


class HotPathsError(ExplorerError, RuntimeError):
    """Hot paths were turned on, or a signal was entered, while they are on already.

    What to do:
        Turn them off first, with `stop()` or by leaving the `with` block, or call `auto_compile()` for new ones.

    Example:
        >>> import explorer
        >>> with explorer.auto_compile() as hot:
        ...     hot.start()
        Traceback (most recent call last):
            ...
        explorer.errors.HotPathsError: these hot paths are on already.
          Hint: call ex.auto_compile() for others.
    """


class MissingCompilerError(ExplorerError):
    """The compiler for a target is not installed, or can't run here.

    What to do:
        Install it: `python -m explorer targets install h100`. The compiler for TPUs needs Linux.

    Example:
        >>> import explorer, os, jax.numpy as jnp
        >>> from unittest.mock import patch
        >>> with patch.dict(os.environ, EXPLORER_CACHE_DIR="/an/empty/folder"):
        ...     explorer.explore(jnp.sin, jnp.ones(2), target="h100")
        Traceback (most recent call last):
            ...
        explorer.errors.MissingCompilerError: the compiler for cuda is not installed:
            jax-cuda13-pjrt==..., about 133 MB, into a folder of Explorer's own.
          Hint: python -m explorer targets install cuda
    """


class MissingPackageError(ExplorerError, ImportError):
    """An optional package is not installed.

    What to do:
        Install it with the command in the message.

    Example:
        >>> import explorer, sys
        >>> from unittest.mock import patch
        >>> with patch.dict(sys.modules, pandas=None):  # as if it were not installed
        ...     explorer.Ledger().to_frame()
        Traceback (most recent call last):
            ...
        explorer.errors.MissingPackageError: to_frame() makes a DataFrame of pandas, which is not
            installed.
          Hint: pip install pandas, or 'jax-compilation-explorer[lab]'; the rows themselves need no package.
    """


class ProfilerBusyError(ExplorerError):
    """Another trace is being recorded; a process has one profiler.

    What to do:
        End the other trace first: `jax.profiler.stop_trace()`.

    Example:
        >>> import explorer, jax, jax.numpy as jnp
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder, jax.profiler.trace(folder):
        ...     explorer.profile(jax.jit(jnp.sin), jnp.ones(2), runs=3)
        Traceback (most recent call last):
            ...
        explorer.errors.ProfilerBusyError: another trace is being recorded in this process, which has
            only one profiler.
          Hint: jax.profiler.stop_trace() ends it.
    """


class TargetCompileError(ExplorerError):
    """The compiler for a target refused the program, ended, or reached a limit.

    What to do:
        Read the compiler's message. If it ran out of time or memory, `explorer.target("h100", …)` allows more.

    Example:
        >>> import explorer, jax, jax.numpy as jnp
        >>> shape = jax.ShapeDtypeStruct((10**6, 10**6), jnp.float32)
        >>> try:  # doctest: +SKIP
        ...     explorer.explore(jnp.sin, shape, target="v5e")
        ... except explorer.errors.ExploreError as error:
        ...     print(repr(error.__cause__))
        TargetCompileError('v5e: RESOURCE_EXHAUSTED: Ran out of memory on HBM, the total memory required ...')
    """


class UnknownTargetError(ExplorerError, ValueError):
    """`target=` names no known hardware, or a number or topology that it doesn't have.

    What to do:
        `explorer.targets()` and `python -m explorer targets` list the hardware.

    Example:
        >>> import explorer
        >>> explorer.target("h1000")
        Traceback (most recent call last):
            ...
        explorer.errors.UnknownTargetError: 'h1000' names no hardware that is known. Did you mean
            'h100'?
          There are: h100, ...
    """


class WorkerError(ExplorerError, RuntimeError):
    """The processes of `executor=` end as they start, or can't read their input.

    What to do:
        Start the processes with a Python that has this Explorer and this JAX, without an initializer that ends them.

    Example:
        >>> import explorer, multiprocessing, os, jax.numpy as jnp
        >>> from concurrent.futures import ProcessPoolExecutor
        >>> sizes, spawn = {"n": [8, 16]}, multiprocessing.get_context("spawn")
        >>> ending = ProcessPoolExecutor(1, mp_context=spawn, initializer=os._exit, initargs=(3,))  # doctest: +SKIP
        >>> with ending:  # doctest: +SKIP
        ...     explorer.sweep(lambda x: x @ x, over=sizes, args=lambda n: jnp.ones((n, n)), executor=ending)
        Traceback (most recent call last):
            ...
        explorer.errors.WorkerError: the processes of executor= end as soon as they start.
          Hint: in a script, start them under `if __name__ == '__main__':`, because each of them runs the script's
              other lines; their own output has the details.
    """


class AmbiguousOptionWarning(UserWarning):
    """A keyword of time(), lint(), … is both an option and a parameter of the function, which gets it.

    What to do:
        Pass the function's arguments in a `Call`: `explorer.time(explorer.Call(f, x, seconds=3), seconds=1)`.

    Example:
        >>> import explorer, warnings, jax.numpy as jnp
        >>> def wait(x, seconds):
        ...     return x * seconds
        >>> with warnings.catch_warnings(record=True) as caught:
        ...     warnings.simplefilter("always")
        ...     _ = explorer.time(wait, jnp.ones(2), seconds=0.01)
        >>> caught[0].category.__name__
        'AmbiguousOptionWarning'
    """


class ProcessWarning(UserWarning):
    """A process compiles another program for a function than the first process, over devices of both.

    What to do:
        Call the function with equal types and settings in all processes; the message names the difference.

    Example:
        >>> import explorer
        >>> with explorer.watch():  # doctest: +SKIP
        ...     train()  # in each process of jax.distributed; the warning comes as soon as one compiles another program
    """


class RecompilationWarning(UserWarning):
    """A function is traced or compiled again and again, which takes longer than running it.

    What to do:
        Follow the hint: pad, mark static, or compile for a range. `watch(storm=…)` sets the number of compiles.

    Example:
        >>> import explorer, jax, warnings, jax.numpy as jnp
        >>> double = jax.jit(lambda x: x * 2)
        >>> xs = [jnp.ones(n) for n in range(1, 5)]
        >>> with warnings.catch_warnings(record=True) as caught, explorer.watch(storm=2):
        ...     warnings.simplefilter("always")
        ...     _ = [double(x) for x in xs]
        >>> {warning.category.__name__ for warning in caught}
        {'RecompilationWarning'}
    """


class TracedPerShapeWarning(UserWarning):
    """A function can't be traced for all its shapes at once, so each shape gets a trace.

    What to do:
        Nothing, if one trace per size is fine. Otherwise choose by `jnp.where` or `lax.cond` instead of the shape.

    Example:
        >>> import explorer, warnings, jax.numpy as jnp
        >>> def f(x):
        ...     return x if x.shape[0] > 5 else -x
        >>> with warnings.catch_warnings(record=True) as caught:
        ...     warnings.simplefilter("always")
        ...     _ = explorer.compile(f, args=[explorer.InputInfo(((1, 4, 8),), "float32")])
        >>> caught[0].category.__name__
        'TracedPerShapeWarning'
    """


class UnknownSignalWarning(UserWarning):
    """A signal is missing from the file of signals, which has a similar name; it has no effect.

    What to do:
        Use the name in the file, or add the signal there.

    Example:
        >>> import explorer, os, subprocess, sys
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> program = "import explorer; explorer.signal('foward')"
        >>> with TemporaryDirectory() as folder:
        ...     path = Path(folder, "signals.yaml")
        ...     _ = path.write_text("forward: {compile: true}")
        ...     environment = {**os.environ, "EXPLORER_CONFIG": str(path)}
        ...     ended = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
        >>> print(ended.stderr.splitlines()[0].partition("Warning: ")[2])
        signal 'foward' isn't in signals.yaml, so nothing is done for it; did you mean 'forward' (line 1)?
    """


class UnwrittenStateWarning(UserWarning):
    """A function changed state that is captured only as `inputs`: the change is dropped.

    What to do:
        Capture it as `outputs` too, or return the new value.

    Example:
        >>> import explorer, warnings, jax.numpy as jnp
        >>> state = {"count": jnp.zeros(())}
        >>> @explorer.jit(inputs=state)
        ... def step(x):
        ...     state["count"] += 1
        ...     return x * 2
        >>> with warnings.catch_warnings(record=True) as caught:
        ...     warnings.simplefilter("always")
        ...     _ = step(jnp.ones(2))
        >>> caught[0].category.__name__, float(state["count"])
        ('UnwrittenStateWarning', 0.0)
    """


__all__ = sorted(  # pyright: ignore[reportUnsupportedDunderAll]
    name for name, value in list(globals().items()) if isinstance(value, type) and value.__module__ == __name__
)
