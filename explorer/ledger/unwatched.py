"""What had compiled before anybody watched: as much of it as JAX's caches tell."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from explorer._jax.compiled import Signature, compiled_by_now
from explorer.analysis.recompiles.reasons import explain
from explorer.ledger.functions import is_primitive
from explorer.model.events.event import Reason
from explorer.model.events.key import Key, Leaf

_UNSEEN = "`{}` had compiled before anything watched, for arguments like these: what changed can't be told"
_MANY = 48  # signatures of one function


class Unwatched:
    """The functions that had compiled when watching began, and what for."""

    def __init__(self) -> None:
        self._read: Callable[[], list[tuple[Any, list[Signature]]]] = list
        self._number: Callable[[Any], int] = id
        self._signatures: dict[int, Sequence[Signature]] | None = None

    def snapshot(self, number: Callable[[Any], int]) -> None:
        """Remember what has compiled up to now; `number` gives a function's `Function.identity`."""
        self._read, self._number, self._signatures = compiled_by_now(), number, None

    def forget(self) -> None:
        """Let go of what JAX's caches held."""
        self._read, self._signatures = list, {}

    def _known_signatures(self) -> dict[int, Sequence[Signature]]:
        if self._signatures is None:  # most watches see no first call of what had compiled before
            functions = [function for function in self._read() if not is_primitive(function[0])]
            self._signatures = {self._number(function): signatures[-_MANY:] for function, signatures in functions}
            self._read = list
        return self._signatures

    def explain(self, key: Key, happened: frozenset[str]) -> Reason | None:
        """Why a call compiled that is the first to be seen of its function; None if it really is the first.

        Shapes, dtypes and the paths of arguments can be compared with, but neither static arguments nor settings.
        """
        if key.function.eager or key.function.is_hot:
            return None
        signatures = self._known_signatures().get(key.function.identity)
        if signatures is None:
            return None
        reason = explain(key, [_key(key, *signature) for signature in signatures], happened)
        if reason.kind in ("first", "evicted", "unknown"):
            return Reason("unknown", text=_UNSEEN.format(key.function.name))
        return reason


def _key(key: Key, paths: Sequence[str | None], avals: Sequence[Any]) -> Key:
    """An earlier key: what isn't known of it is as in `key`."""
    like = {leaf.path: leaf for leaf in key.leaves}
    named = [path or f"arg{i}" for i, path in enumerate(paths)]
    leaves = tuple(_leaf(path, aval, like) for path, aval in zip(named, avals, strict=True))
    if [leaf.path for leaf in leaves] == [*like]:
        return replace(key, leaves=leaves)
    return replace(key, leaves=leaves, tree=None, structure=-1)


def _leaf(path: str, aval: Any, like: dict[str, Leaf]) -> Leaf:
    shape = tuple(size if isinstance(size, int) else str(size) for size in aval.shape)
    dtype, weak = str(getattr(aval.dtype, "name", aval.dtype)), bool(getattr(aval, "weak_type", False))
    if path in like:
        return like[path]._replace(shape=shape, dtype=dtype, weak=weak)
    return Leaf(path, shape, dtype, weak)
