"""What this process has compiled already, whether or not anybody watched."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, cast

Signature = tuple[Sequence[str | None], Sequence[Any]]  # the arguments' paths, and their avals

try:
    # What jax.jit keeps of traces, by function, and of lowered programs. Nothing public tells of either.
    from jax._src.interpreters.partial_eval import trace_to_jaxpr as _traces  # pyright: ignore
    from jax._src.pjit import _pjit_lower as _lowered  # pyright: ignore

    _caches = _traces.cache_keys, _lowered.cache_keys
except (ImportError, AttributeError):  # pragma: no cover - what is seen first is then taken for the first
    _caches = None


def compiled_by_now() -> Callable[[], list[tuple[Any, list[Signature]]]]:
    """What has compiled up to this moment, to be read later: to remember takes microseconds, to read a millisecond.

    Returns:
        A function that gives the functions that were given to `jax.jit` and are still there then, and what the lowered
        programs of each are for.
    """
    return partial(_signatures, *(keys() for keys in _caches)) if _caches is not None else list


def _signatures(traced: list[Any], lowered: list[Any]) -> list[tuple[Any, list[Signature]]]:
    programs: set[tuple[str, tuple[Any, ...]]] = set()
    for jaxpr, _ in _alive(lowered):
        info = getattr(jaxpr, "jaxpr", jaxpr).debug_info  # up to 0.10 a jaxpr is inside of one with its constants
        programs.add((info.func_src_info, tuple(jaxpr.in_avals)))
    signatures: dict[int, tuple[Any, list[Signature]]] = {}
    for function, rest in _alive(traced):
        info = next((part for part in rest if hasattr(part, "func_src_info")), None)
        avals = tuple(_avals(rest[0])) if rest else ()
        if info is not None and (info.func_src_info, avals) in programs:
            names = info.arg_names if len(info.arg_names or ()) == len(avals) else (None,) * len(avals)
            signatures.setdefault(id(function), (function, []))[1].append((names, avals))
    return [*signatures.values()]


def _alive(keys: list[Any]) -> Iterator[tuple[Any, Any]]:
    """What is held weakly by the keys of a cache, and the rest of the key: `(weak reference, context, rest, named)`."""
    for key in keys:
        try:
            value, rest = key[0](), key[2]
        except (IndexError, TypeError):
            continue
        if value is not None:
            yield value, rest


def _avals(tree: Any) -> Iterator[Any]:
    """The avals in what JAX keeps arguments in: its own trees up to 0.10, others since, tuples and dicts of them."""
    if hasattr(tree, "dtype"):
        yield tree
        return
    inner: Any = getattr(tree, "vals", tree)
    if isinstance(inner, (tuple, list, dict)):
        parts = cast("dict[str, Any]", inner).values() if isinstance(inner, dict) else cast("list[Any]", inner)
        for part in parts:
            yield from _avals(part)
