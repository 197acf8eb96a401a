"""Binaries of an executable: one for each set of sizes, least recently used dropped first, and JAX's C++ dispatch."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from threading import Lock
from typing import Any

import jax
import numpy as np

from explorer._jax.dispatch import with_fast_path
from explorer.aot.arguments import Parameter
from explorer.aot.exported import ExportedProgram
from explorer.aot.program import Program
from explorer.aot.verdict import Dynamic, PaddedProgram
from explorer.capture.explore import CompileRequest, compile_with_findings
from explorer.capture.sources import ForeignSources, read_source, users_frame
from explorer.errors import ExploreError, ExplorerError, RecompilationWarning
from explorer.model.capture import Capture
from explorer.model.declared import cached_property
from explorer.model.results.dynamic_report import Specialization
from explorer.padding.interpreter import Notes
from explorer.runtime import Table

Key = tuple[int, ...]

_LISTED = 12  # maximum number of sizes in a warning
_REMEMBERED = 1024  # dropped keys that are remembered: a longer rotation of shapes isn't noticed


@dataclass(frozen=True)
class Binary:
    """Compiled program for one set of sizes, with its capture and its row in `specializations`.

    Args:
        call: Takes the parameters' values, arrays only. Returns the result and the dispatcher's fast-path entry.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> double = explorer.compile(lambda x: x * 2, args=[explorer.InputInfo((4,), jnp.float32)])
        >>> sizes, binary = double.binaries[0]
        >>> binary.capture.hlo.name, binary.specialization.shapes
        ('hlo', {'x': (4,)})
    """

    call: Callable[..., tuple[Any, Any]]
    compiled: Any
    capture: Capture
    specialization: Specialization

    @cached_property
    def devices(self) -> frozenset[Any]:
        """Return the devices that the binary runs on."""
        shardings: list[Any] = jax.tree.leaves((self.compiled.input_shardings, self.compiled.output_shardings))
        return frozenset(device for sharding in shardings for device in sharding.device_set)


@dataclass(frozen=True)
class Plan:
    """Everything an executable is built from."""

    parameters: tuple[Parameter, ...]
    program: Program | ExportedProgram
    options: Mapping[str, Any]  # XLA's compiler options
    donated: tuple[str, ...]  # names of parameters whose arrays a call may overwrite
    limit: int  # maximum number of binaries
    dynamic: Dynamic = field(default_factory=Dynamic)
    padded: PaddedProgram | None = None  # None if nothing is padded


class Binaries:
    """Table of a program's binaries. Each set of sizes is compiled once, however many threads ask for it."""

    def __init__(self, plan: Plan, on_drop: Callable[[], None]) -> None:
        self._program = plan.program
        self._symbols = plan.program.symbols
        self._options = dict(plan.options)
        self._limit = plan.limit
        self._on_drop = on_drop
        self._names = [parameter.name for parameter in plan.parameters]
        self._donated = [name for name in self._names if name in plan.donated]
        self._trees: list[Any] = [jax.tree.structure(parameter.example) for parameter in plan.parameters]
        self._table = Table[Key, Binary](plan.limit, _REMEMBERED)
        self._differentiable = Table[Key, Any](plan.limit)
        self._lock = Lock()
        self._locks: dict[Key, Lock] = {}
        self._has_warned = False

    def arguments(self, leaves: Sequence[Any]) -> tuple[Any, ...]:
        """Return a tuple with each parameter's pytree, filled from the flat `leaves`. Sizes (ints) and constants become
        None.
        """
        return self.in_trees([None if isinstance(leaf, int) else leaf for leaf in leaves])

    def in_trees(self, leaves: Sequence[Any]) -> tuple[Any, ...]:
        """Return a tuple with each parameter's pytree, filled from the flat `leaves`. Constants become None."""
        given = iter(leaves)
        return tuple(tree.unflatten([next(given) for _ in range(tree.num_leaves)]) for tree in self._trees)

    def ready(self, sizes: Mapping[str, int]) -> Binary | None:
        with self._lock:
            return self._table.used(self._key(sizes))

    def binary(self, sizes: Mapping[str, int], reason: str = "called") -> Binary:
        __tracebackhide__ = True
        key, binary = self._key(sizes), self.ready(sizes)
        if binary is None:
            with self._lock:
                # One for each key: other sizes may compile at the same time.
                lock = self._locks.setdefault(key, Lock())
            try:
                with lock:
                    binary = self.ready(sizes)  # another thread may have compiled it meanwhile
                    if binary is None:
                        binary = self.compile(sizes, reason)
                        self.add(sizes, binary)
                        self._warn_of_rotation(key, binary)
            finally:
                with self._lock:
                    self._locks.pop(key, None)
        return binary

    def add(self, sizes: Mapping[str, int], binary: Binary) -> None:
        with self._lock:
            dropped = self._table.put(self._key(sizes), binary)
        self._after_drop(dropped)

    def clear(self, keep: Binary | None) -> None:
        with self._lock:
            dropped = [key for key, binary in self._table.items() if binary is not keep]
            for key in dropped:
                del self._table[key]
            self._differentiable.clear()
        self._after_drop(dropped)

    def differentiable(self, sizes: Mapping[str, int]) -> Any:
        """Return the program at these sizes as a `jax.jit` function of its arrays, which can be differentiated and
        batched.
        """
        key = self._key(sizes)
        with self._lock:
            function = self._differentiable.used(key)
        if function is None:
            function = jax.jit(self._program.differentiable(sizes))
            with self._lock:
                self._differentiable.put(key, function)
        return function

    @property
    def by_sizes(self) -> list[tuple[dict[str, int], Binary]]:
        with self._lock:
            return [(dict(zip(self._symbols.bounds, key, strict=True)), binary) for key, binary in self._table.items()]

    def _key(self, sizes: Mapping[str, int]) -> Key:
        return tuple(sizes[symbol] for symbol in self._symbols.bounds)

    def _after_drop(self, dropped: Sequence[Key]) -> None:
        for old in dropped:
            self._program.discard(dict(zip(self._symbols.bounds, old, strict=True)))
        if dropped:
            self._on_drop()

    def _warn_of_rotation(self, key: Key, binary: Binary) -> None:
        # A dropped binary is compiled again: more shapes are in rotation than the table holds. Warn once.
        with self._lock:
            if self._has_warned or key not in self._table.dropped:
                return
            self._has_warned = True
            since = [*self._table.dropped]
            rotation = sorted({*self._table, *since[since.index(key) :]})
        symbols = ", ".join(self._symbols.bounds)
        listed = ", ".join(str(one[0] if len(one) == 1 else one) for one in rotation[:_LISTED])
        frame = users_frame()
        warnings.warn_explicit(
            f"{self._program.name} is called with more shapes in turn than the {self._limit} it keeps: each is "
            f"compiled again ({binary.specialization.seconds:.2g} s) when it comes back.\n"
            f"  {symbols}: {listed}{', …' if len(rotation) > _LISTED else ''}\n"
            f"  Hint: compile(…, max_specializations={len(rotation)}) or more, or pad to fewer sizes.",
            RecompilationWarning,
            *((frame.f_code.co_filename, frame.f_lineno) if frame is not None else ("<explorer>", 1)),
        )

    def compile(self, sizes: Mapping[str, int], reason: str) -> Binary:
        __tracebackhide__ = True

        def program(*values: Any) -> Any:
            __tracebackhide__ = True
            return self._program.at(sizes)(*jax.tree.leaves(values))

        why = "; ".join(filter(None, [reason, self._program.why(sizes)]))
        return self._compile(program, self._names, self.arguments(self._symbols.structs(sizes)), sizes, why)

    def compile_padded(self, padded: PaddedProgram, bucket: Mapping[str, int], reason: str) -> Binary:
        """Compile a binary of a padded program without storing it. Its first argument holds the true sizes."""
        __tracebackhide__ = True
        notes: Notes = {}
        run = padded.at(bucket, notes)

        def program(sizes: Mapping[str, Any], *values: Any) -> Any:
            __tracebackhide__ = True
            return jax.tree.unflatten(padded.structure, run(sizes, *jax.tree.leaves(values)))

        name = next(name for i in count() if (name := "sizes" + "_" * i) not in self._names)
        return self._compile(program, [name, *self._names], self.padded_arguments(bucket), bucket, reason, notes)

    def padded_arguments(self, bucket: Mapping[str, int]) -> tuple[Any, ...]:
        """Return the abstract arguments of a padded binary: a dict of the sizes, and each parameter in
        the bucket's shapes.
        """
        true = {symbol: jax.ShapeDtypeStruct((), np.int32) for symbol in bucket}
        return true, *self.arguments(self._symbols.structs(bucket))

    def _compile(
        self,
        program: Callable[..., Any],
        names: Sequence[str],
        arguments: tuple[Any, ...],
        sizes: Mapping[str, int],
        why: str,
        notes: Notes | None = None,
    ) -> Binary:
        __tracebackhide__ = True
        # JAX takes the names of the module and its arguments from these.
        program.__name__ = self._program.name
        program.__dict__["explored"] = self._program.function  # read by the ledger
        kind = inspect.Parameter.POSITIONAL_ONLY
        program.__signature__ = inspect.Signature([inspect.Parameter(name, kind) for name in names])  # pyright: ignore[reportFunctionMemberAccess]
        donated = [names.index(name) for name in self._donated]
        target = jax.jit(program, donate_argnums=donated, compiler_options=self._options or None)
        function, named_arrays = self._program.function, self._program.named_arrays
        request = CompileRequest(
            function,
            arguments,
            {},
            target=target,
            verb="compiled",
            named_arrays=named_arrays,
            notes={} if notes is None else notes,
            # An executable's file can name any path: only sources of this project may be shown for it.
            read_source=ForeignSources().read if isinstance(self._program, ExportedProgram) else read_source,
        )
        try:
            _, _, compiled, capture = compile_with_findings(request)
        except ExploreError as error:
            # Explorer's own error about the user's function is clearer without the wrapper.
            if isinstance(error.__cause__, ExplorerError):
                raise error.__cause__ from None
            raise
        spent = capture.durations
        seconds = spent.trace + spent.lower + spent.compile
        specialization = Specialization(self._symbols.shapes(sizes), why, seconds, capture=capture)
        return Binary(with_fast_path(compiled), compiled, capture, specialization)
