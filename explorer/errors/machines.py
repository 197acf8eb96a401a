"""What a machine lacks: compilers, packages, processes, a profiler of its own."""

from __future__ import annotations

from explorer.errors.base import ExplorerError


class HotPathsError(ExplorerError, RuntimeError):
    """Hot paths were turned on, or a signal was entered, where that is so already.

    What to do:
        Turn these off first, with `stop()` or at the end of the `with` block, or call `auto_compile()` for others.

    Example:
        >>> import explorer
        >>> with explorer.auto_compile() as hot:
        ...     hot.start()
        Traceback (most recent call last):
            ...
        explorer.errors.machines.HotPathsError: these hot paths are on already.
          Hint: call ex.auto_compile() for others.
    """


class MissingCompilerError(ExplorerError):
    """The compiler for some hardware is not installed, or can't run here.

    What to do:
        Install it where JAX never sees it: `python -m explorer targets install h100`. TPUs' needs Linux.

    Example:
        >>> import explorer, os, jax.numpy as jnp
        >>> from unittest.mock import patch
        >>> with patch.dict(os.environ, EXPLORER_CACHE_DIR="/an/empty/folder"):
        ...     explorer.explore(jnp.sin, jnp.ones(2), target="h100")
        Traceback (most recent call last):
            ...
        explorer.errors.machines.MissingCompilerError: the compiler for cuda is not installed:
            jax-cuda13-pjrt==..., about 133 MB, into a folder of Explorer's own.
          Hint: python -m explorer targets install cuda
    """


class MissingPackageError(ExplorerError, ImportError):
    """What was asked for needs a package that is not installed.

    What to do:
        Install it; the message has the command.

    Example:
        >>> import explorer, sys
        >>> from unittest.mock import patch
        >>> with patch.dict(sys.modules, pandas=None):  # as if it were not installed
        ...     explorer.Ledger().to_frame()
        Traceback (most recent call last):
            ...
        explorer.errors.machines.MissingPackageError: to_frame() makes a DataFrame of pandas, which is not
            installed.
          Hint: pip install pandas, or 'jax-compilation-explorer[lab]'; the rows themselves need nothing.
    """


class ProfilerBusyError(ExplorerError):
    """A trace is being recorded in this process already, and it has one profiler.

    What to do:
        End the other trace first: `jax.profiler.stop_trace()`.

    Example:
        >>> import explorer, jax, jax.numpy as jnp
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder, jax.profiler.trace(folder):
        ...     explorer.profile(jax.jit(jnp.sin), jnp.ones(2), runs=3)
        Traceback (most recent call last):
            ...
        explorer.errors.machines.ProfilerBusyError: another trace is being recorded in this process, and it has
            one profiler.
          Hint: jax.profiler.stop_trace() ends it.
    """


class TargetCompileError(ExplorerError):
    """The compiler of hardware that is not here refused a program, ended, or took longer than it may.

    What to do:
        Read what its compiler says; where it ran out of time or memory, `explorer.target("h100", …)` allows more.

    Example:
        >>> import explorer, jax, jax.numpy as jnp
        >>> shape = jax.ShapeDtypeStruct((10**6, 10**6), jnp.float32)
        >>> try:  # doctest: +SKIP
        ...     explorer.explore(jnp.sin, shape, target="v5e")
        ... except explorer.ExploreError as error:
        ...     print(repr(error.__cause__))
        TargetCompileError('v5e: RESOURCE_EXHAUSTED: Ran out of memory on HBM, the total memory required ...')
    """


class UnknownTargetError(ExplorerError, ValueError):
    """`target=` names no hardware that is known, or a number or topology that it has not.

    What to do:
        `explorer.targets()` lists what there is, `python -m explorer targets` too.

    Example:
        >>> import explorer
        >>> explorer.target("h1000")
        Traceback (most recent call last):
            ...
        explorer.errors.machines.UnknownTargetError: 'h1000' names no hardware that is known. Did you mean
            'h100'?
          There are: h100, ...
    """


class WorkerError(ExplorerError, RuntimeError):
    """The processes of `executor=` end as they start, or can't read what they are sent.

    What to do:
        Start the executor's processes with a Python that has this Explorer and this JAX, and no initializer that
        ends them.

    Example:
        >>> import explorer, multiprocessing, os, jax.numpy as jnp
        >>> from concurrent.futures import ProcessPoolExecutor
        >>> sizes, spawn = {"n": [8, 16]}, multiprocessing.get_context("spawn")
        >>> ending = ProcessPoolExecutor(1, mp_context=spawn, initializer=os._exit, initargs=(3,))  # doctest: +SKIP
        >>> with ending:  # doctest: +SKIP
        ...     explorer.sweep(lambda x: x @ x, over=sizes, args=lambda n: jnp.ones((n, n)), executor=ending)
        Traceback (most recent call last):
            ...
        explorer.errors.machines.WorkerError: the processes of executor= end as soon as they start.
          Hint: in a script, what starts them belongs under `if __name__ == '__main__':`, for each of them runs the
              script's other lines; what they printed says more.
    """
