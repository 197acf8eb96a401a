"""A function compiled for some arguments, with its capture, to be called repeatedly."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, cast

import jax
import jax.numpy as jnp

from explorer._jax.arguments import is_jitted, jit_options, static_arguments
from explorer._jax.settings import option_names
from explorer.analysis.kernel_costs import running_nodes
from explorer.analysis.loops import unknown_loops
from explorer.capture.backends import Backend, HereBackend
from explorer.capture.explore import CompileRequest, compile_stages, keys_like, struct_of
from explorer.capture.filtered import arrays_of, flatten, inner_call, inner_jit, is_filtered, with_inner
from explorer.errors import ExploreError, OptionError
from explorer.model.capture import Capture
from explorer.model.text import did_you_mean

_LONGEST = 300  # characters of an error
_NO_OPTION = re.compile(r"No such compile option: '(\w+)'")


@dataclass(frozen=True)
class CompiledSubject:
    """A compiled function and the arguments to call it with.

    Args:
        capture: Its capture.
        traced: JAX's trace.
        call, args, kwargs: The compiled program and its arguments; arrays of ones replace shapes.
    """

    capture: Capture
    traced: Any
    call: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


def compile_subject(
    function: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    *,
    verb: str,
    target: Callable[..., Any] | None = None,
    options: Mapping[str, Any] | None = None,
    within: Callable[[], AbstractContextManager[Any]] = nullcontext,
    backend: Backend | None = None,
    is_known: bool = False,
) -> CompiledSubject:
    """Return a function traced, lowered and compiled, from scratch unless `is_known`.

    Args:
        function: The function that the capture is named after.
        args, kwargs: Arrays, or descriptions of arrays, which are filled with ones.
        verb: Past participle for errors: "f can't be {verb}".
        target: The function to compile, if that is not `function`.
        options: XLA's compiler options.
        within: Context manager around tracing and compiling.
        backend: The compiler, if not JAX for the devices here. The result can't be called then.
        is_known: Reuse JAX's caches: the program that `explore` shows and a call runs.

    Raises:
        ExploreError: It can't be compiled.
        OptionError: `options` are given, and the program takes more than the call's arguments (captured state).
    """
    target = function if target is None else target
    leaves, rebuild = flatten((tuple(args), dict(kwargs)))
    is_wrapped, is_without_static = inner_jit(target) is not None, is_filtered(target)
    structs = [*map(struct_of, leaves)]
    shapes = rebuild(structs)
    new = target if is_known else _anew(target)
    request = CompileRequest(function, *shapes, target=new, options=dict(options or {}) or None, verb=verb)
    request = replace(request, backend=backend or HereBackend())
    with within():
        traced, _, compiled, capture = compile_stages(request)
    static = static_arguments(target)
    if compiled is None:

        def not_here(*args: Any, **kwargs: Any) -> Any:
            raise OptionError("what was compiled for hardware that isn't here can't be called.")

        return CompiledSubject(capture, traced, not_here, *shapes)
    arrays = rebuild([*map(_filled, structs)])
    if is_wrapped:
        return called_through(target, capture, traced, compiled, *arrays)
    taken = arrays_of(arrays) if is_without_static else _dynamic(static, *arrays)
    if jax.tree.structure(taken) == compiled.in_tree:
        return CompiledSubject(capture, traced, compiled, *taken)
    if options:
        raise OptionError(
            f"{request.name} has more arguments than a call, such as captured state; "
            "it can't be called with options of XLA's."
        )
    return CompiledSubject(capture, traced, target if hasattr(target, "trace") else jax.jit(target), *arrays)


def called_through(
    wrapper: Any, capture: Capture, traced: Any, compiled: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> CompiledSubject:
    """Return a program compiled from a wrapper's trace, callable with the wrapper's arguments.

    Args:
        wrapper: The function returned by `flax.nnx.jit` or `equinox.filter_jit`.
        capture: Capture of the program.
        traced: Trace of the wrapper.
        compiled: The program; it takes the leaves of the traced arguments, or the traced arguments.
        args, kwargs: Arguments of the wrapper.
    """
    is_flat = getattr(compiled, "in_tree", None) != traced.in_tree
    structure = cast(Any, jax.tree.structure(traced.out_info))

    def run(*arrays: Any, **named: Any) -> Any:
        if not is_flat:
            return compiled(*arrays, **named)
        return jax.tree.unflatten(structure, jax.tree.leaves(compiled(*jax.tree.leaves((arrays, named)))))

    if jax.tree.structure(arrays_of((args, kwargs))) == traced.in_tree:  # what `filtered` makes
        return CompiledSubject(capture, traced, run, *arrays_of((args, kwargs)))
    inner = inner_jit(wrapper)

    def run_inner(*inner_args: Any, **inner_kwargs: Any) -> Any:
        arrays, named = _taken(inner, inner_args, inner_kwargs)
        return run(*arrays, **named)

    return CompiledSubject(capture, traced, with_inner(wrapper, run_inner), args, kwargs)


def leaves_of(wrapper: Any, traced: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
    """Return the arrays that a wrapper's trace takes for a call, in the order of its jaxpr's inputs."""
    given = arrays_of((args, kwargs))
    if jax.tree.structure(given) != traced.in_tree:
        given = _taken(inner_jit(wrapper), *inner_call(wrapper, args, kwargs))
    return jax.tree.leaves(given)


def donated_leaves(traced: Any) -> list[bool]:
    """Return, for each input of a trace, True if a call deletes it."""
    infos = jax.tree.leaves(traced.args_info, is_leaf=lambda info: hasattr(info, "donated"))
    return [bool(info.donated) for info in infos]


def filled(values: Any) -> Any:
    """Return the tree with arrays of ones, or random keys, in place of descriptions of arrays."""
    leaves, rebuild = flatten(values)
    return rebuild([_filled(struct_of(leaf)) for leaf in leaves])


def _filled(leaf: Any) -> Any:
    if not isinstance(leaf, jax.ShapeDtypeStruct):
        return leaf
    is_key = jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
    return keys_like(leaf) if is_key else jnp.ones(leaf.shape, leaf.dtype, device=leaf.sharding)


def kernels_of(capture: Capture) -> int:
    """Return the number of kernels in the optimized program."""
    return len(running_nodes(capture.hlo.graph))


def flops_and_bytes(capture: Capture) -> tuple[float, float]:
    """Return FLOPs and bytes moved per call, loop bodies counted per iteration; NaN if a trip count or the figure is
    unknown.
    """
    graph = capture.hlo.graph
    measures, kernels = graph.measures, running_nodes(graph)
    is_unknown = bool(len(unknown_loops(graph)))
    flops, moved = (
        float("nan") if is_unknown or name not in measures else float(measures[name][kernels].sum())
        for name in ("flops", "bytes")
    )
    return flops, moved


def error_line(error: BaseException) -> str:
    """Return an error's type and message as one line; for an ExploreError those of its cause.

    An unknown XLA option gets a hint with similar names.
    """
    cause = error.__cause__ if isinstance(error, ExploreError) and error.__cause__ is not None else error
    message = str(cause).strip().partition("\n")[0]
    line = f"{type(cause).__name__}: {message}" if message else type(cause).__name__
    line = line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"
    missing = _NO_OPTION.search(line)
    return line + did_you_mean(missing[1], option_names()) if missing else line


def _anew(target: Any) -> Callable[..., Any]:
    # JAX keeps traces and programs by the identity of the function: a new object starts without them.
    if is_jitted(target) and (options := jit_options(target)) is not None:
        return jax.jit(partial(target.__wrapped__), **options)
    return target if hasattr(target, "trace") or is_filtered(target) else partial(target)


def _taken(target: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any]:
    """Return (args, kwargs) without what the compiled program doesn't take.

    Static arguments are left out; for a filtered jit, leaves that are no arrays become None.
    """
    return arrays_of((args, kwargs)) if is_filtered(target) else _dynamic(static_arguments(target), args, kwargs)


def _dynamic(
    static: tuple[tuple[int, ...], tuple[str, ...]], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, Any]:
    numbers, names = static
    return (
        # `static_argnums` may count from the end.
        tuple(value for i, value in enumerate(args) if i not in numbers and i - len(args) not in numbers),
        {name: value for name, value in kwargs.items() if name not in names},
    )
