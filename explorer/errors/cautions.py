"""Warnings: what happens may not be what was meant."""

from __future__ import annotations


class AmbiguousOptionWarning(UserWarning):
    """A keyword of time(), lint(), … is the name of an option and of a parameter of the function, which gets it.

    What to do:
        Give the verb's own option in a `Call`: `explorer.time(explorer.Call(f, x, seconds=3), seconds=1)`.

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
    """A process compiles another program for a function than the first one does, over devices of both.

    What to do:
        Make all processes call the function with equal types and settings: the message says what differs, and
        where.

    Example:
        >>> import explorer
        >>> with explorer.watch():  # doctest: +SKIP
        ...     train()  # in each process of jax.distributed; the warning comes as soon as one compiles another program
    """


class RecompilationWarning(UserWarning):
    """A function is traced or compiled again and again, which takes longer than running it.

    What to do:
        Do what its hint says: pad, mark static, or compile for a range; `watch(storm=…)` sets after how many it
        comes.

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
    """A function can't be traced for all its shapes at once; each that comes is traced for itself.

    What to do:
        Nothing, if each size may have a trace of its own; else choose by `jnp.where` or `lax.cond`, not by the
        shape.

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
    """A signal isn't in the file of signals, which has one of nearly that name: nothing is done for it.

    What to do:
        Write the name as the file has it, or add it there.

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
    """A function changed state that is captured as `inputs` only: the change is dropped.

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
