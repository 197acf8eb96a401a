"""Whether JAX's own explanation names a cause: with the benefit of the doubt."""

from __future__ import annotations

import re

from tests.corpus_recompiles.causes import Cause

__all__ = ["jax_names_it"]


def jax_names_it(cause: Cause, said: str) -> bool:
    """Whether the text names the true kind, and the true leaf first: what it says of placement would be enough."""
    read = _READ.get(cause.kind)
    return read is not None and read(cause, said)


def _types(cause: Cause, said: str) -> bool:
    """Another type: the first that is listed is one that changed, and what is said of it differs in the true way."""
    found = re.search(r"different input types.*?\* at (.+?), now (\S+?)( |$).*?and before (\S+)", said, re.DOTALL)
    if found is None:
        return False
    name, now, before = found[1], found[2], found[4]
    if name not in {re.sub(r"\.(shape\[\d+\]|ndim)$", "", leaf) for leaf in cause.leaves}:
        return False
    return cause.kind != "weak-type" or "weak_type=" in now + before


def _structure(cause: Cause, said: str) -> bool:
    """Another structure, whichever way the place is said."""
    return "different input pytree" in said


def _function(cause: Cause, said: str) -> bool:
    """Never seen, and said to be one of several from there."""
    return "never seen function" in said and "seen another function" in said


def _first(cause: Cause, said: str) -> bool:
    return "never seen function" in said and "seen another function" not in said


def _static(cause: Cause, said: str) -> bool:
    """A value that is static; its place, which is said by number, is enough for its name."""
    return "different input pytree" in said and ("Static" in said or any(f"'{leaf}'" in said for leaf in cause.leaves))


def _context(cause: Cause, said: str) -> bool:
    """The setting by name; of a mesh, any setting that has to do with one."""
    return "Tracing context doesn't match" in said and any(leaf.removeprefix("jax_") in said for leaf in cause.leaves)


def _sharding(cause: Cause, said: str) -> bool:
    """A type that says how the right argument is spread: said where JAX traces for it."""
    found = re.search(r"different input types.*?\* at (.+?), now", said, re.DOTALL)
    return found is not None and found[1] in cause.leaves


def _text(cause: Cause, said: str) -> bool:
    """Of what only a lowering depends on, and of what was forgotten, JAX has no words: any that name it would do."""
    return any(word in re.sub(r"\S+\.py:\S+( \(.*?\))?|id=\d+", "", said) for word in (cause.kind, *cause.leaves))


_READ = {
    "first": _first,
    "shape": _types, "rank": _types, "dtype": _types, "weak-type": _types, "structure": _structure,
    "function": _function, "static": _static, "context": _context, "sharding": _sharding, "device": _text,
    "layout": _text, "committed": _text, "donation": _text, "options": _text, "evicted": _text,
}  # fmt: skip
