"""A function compiled for some arguments, with its capture, to be called again and again."""

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
from explorer.analysis.cost.kernels import running_nodes
from explorer.analysis.cost.loops import unknown_loops
from explorer.capture.agreement import keys_like
from explorer.capture.backends import Backend, HereBackend
from explorer.capture.explore import CompileRequest, compile_stages
from explorer.capture.filtered import arrays_of, flatten, inner_call, inner_jit, is_filtered, with_inner
from explorer.errors import ExploreError, OptionError
from explorer.measure.calls import Calls
from explorer.measure.naming import struct_of
from explorer.model.capture import Capture
from explorer.model.declared import cached_property
from explorer.model.text import did_you_mean

_LONGEST = 300  # characters of an error
_NO_OPTION = re.compile(r"No such compile option: '(\w+)'")


@dataclass(frozen=True)
class CompiledSubject:
    """What was compiled, and how to call it.

    Args:
        capture: What was seen of it.
        traced: JAX's trace.
        call, args, kwargs: The compiled program and what it takes; arrays are made where only shapes were given.
        calls: The same, so that it can be called again and again.
    """

    capture: Capture
    traced: Any
    call: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    @cached_property
    def calls(self) -> Calls:
        return Calls(self.call, self.args, self.kwargs)


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
    """Trace, lower and compile a function, each from scratch.

    Args:
        function: Whose name stands in the capture.
        args, kwargs: Arrays, or what stands for them: such are made, of ones.
        verb: What an error says could not be done.
        target: What is compiled, where that is not the function.
        options: XLA's.
        within: The context in which it is traced and compiled.
        backend: What compiles it, where that isn't JAX for the devices that are here. Then it can't be called.
        is_known: Whether what JAX keeps of the function is taken: the program that `explore` shows and a call runs.

    Raises:
        ExploreError: It can't be compiled.
        OptionError: With these options what is compiled can't be called, as with captured state.
    """
    target = function if target is None else target
    leaves, rebuild = flatten((tuple(args), dict(kwargs)))
    shapes = rebuild([struct_of(leaf) for leaf in leaves])
    new = target if is_known else _anew(target)
    request = CompileRequest(function, *shapes, target=new, options=dict(options or {}) or None, verb=verb)
    request = replace(request, backend=backend or HereBackend())
    with within():
        traced, _, compiled, capture = compile_stages(request)
    if compiled is None:
        return CompiledSubject(capture, traced, _not_here, *shapes)
    arrays = filled((tuple(args), dict(kwargs)))
    inner = inner_jit(target)
    if inner is not None:
        return called_through(target, capture, traced, compiled, *arrays)
    taken = _taken(target, *arrays)
    if jax.tree.structure(taken) == compiled.in_tree:
        return CompiledSubject(capture, traced, compiled, *taken)
    if options:
        raise OptionError(
            f"{request.name} has arguments beside those of a call, such as captured state; "
            "it can't be called with options of XLA's."
        )
    call = target if hasattr(target, "trace") else jax.jit(target)
    return CompiledSubject(capture, traced, call, *arrays)


def called_through(
    wrapper: Any, capture: Capture, traced: Any, compiled: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> CompiledSubject:
    """Return a program that was compiled of a wrapper's trace, and how to call it.

    Args:
        wrapper: What `flax.nnx.jit` or `equinox.filter_jit` returned.
        capture: What was seen of the program.
        traced: The trace of the wrapper.
        compiled: The program: it takes the leaves of what was traced, or what was traced.
        args, kwargs: The arguments of the wrapper.
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
    """Return the arrays that a trace of a wrapper takes for a call, in the order of its jaxpr's inputs."""
    given = arrays_of((args, kwargs))
    if jax.tree.structure(given) != traced.in_tree:
        given = _taken(inner_jit(wrapper), *inner_call(wrapper, args, kwargs))
    return jax.tree.leaves(given)


def donated_leaves(traced: Any) -> list[bool]:
    """Return for each input of a trace whether a call deletes it."""
    infos = jax.tree.leaves(traced.args_info, is_leaf=lambda info: hasattr(info, "donated"))
    return [bool(info.donated) for info in infos]


def filled(values: Any) -> Any:
    """Return the tree with arrays of ones in place of what stands for arrays."""
    leaves, rebuild = flatten(values)
    return rebuild([_array(struct_of(leaf)) for leaf in leaves])


def kernels_of(capture: Capture) -> int:
    """How many kernels the program has."""
    return len(running_nodes(capture.hlo.graph))


def flops_and_bytes(capture: Capture) -> tuple[float, float]:
    """Operations and bytes moved by a call, a loop's body as often as it runs; NaN where nobody knows."""
    graph = capture.hlo.graph
    measures, kernels = graph.measures, running_nodes(graph)
    if len(unknown_loops(graph)):
        return float("nan"), float("nan")
    sums = [measures[name][kernels].sum() if name in measures else float("nan") for name in ("flops", "bytes")]
    return float(sums[0]), float(sums[1])


def error_line(error: BaseException) -> str:
    """`ValueError: …`: the user's own error in a line, rather than ours about it; and what an option may mean."""
    cause = error.__cause__ if isinstance(error, ExploreError) and error.__cause__ is not None else error
    message = str(cause).strip().partition("\n")[0]
    line = f"{type(cause).__name__}: {message}" if message else type(cause).__name__
    line = line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"
    missing = _NO_OPTION.search(line)
    return line + did_you_mean(missing[1], option_names()) if missing else line


def _not_here(*args: Any, **kwargs: Any) -> Any:
    raise OptionError("what was compiled for hardware that isn't here can't be called.")


def _anew(target: Any) -> Callable[..., Any]:
    """The same under another identity: of this one JAX remembers no trace and no program."""
    if is_jitted(target):
        options = jit_options(target)
        return target if options is None else jax.jit(partial(target.__wrapped__), **options)
    return target if hasattr(target, "trace") or is_filtered(target) else partial(target)


def _taken(target: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any]:
    """What the compiled program takes of a call's arguments: those that are not static."""
    if is_filtered(target):
        return arrays_of((args, kwargs))
    numbers, names = static_arguments(target)
    return (
        tuple(value for i, value in enumerate(args) if i not in numbers and i - len(args) not in numbers),
        {name: value for name, value in kwargs.items() if name not in names},
    )


def _array(leaf: Any) -> Any:
    if not isinstance(leaf, jax.ShapeDtypeStruct):
        return leaf
    if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        return keys_like(leaf)
    return jnp.ones(leaf.shape, leaf.dtype, device=leaf.sharding)
