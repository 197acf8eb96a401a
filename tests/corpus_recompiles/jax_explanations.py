"""Whether JAX's own explanation names a cause: with the benefit of the doubt."""

from __future__ import annotations

import re

from tests.corpus_recompiles.causes import Cause

__all__ = ["jax_names_it"]


def jax_names_it(cause: Cause, text: str) -> bool:
    """Whether the text names the true kind, and the true leaf first: what it says of placement would be enough."""
    read = _READ.get(cause.kind)
    return read is not None and read(cause, text)


def _types(cause: Cause, text: str) -> bool:
    """Another type: the first that is listed is one that changed, and what is said of it differs in the true way."""
    match = re.search(r"different input types.*?\* at (.+?), now (\S+?)( |$).*?and before (\S+)", text, re.DOTALL)
    if match is None:
        return False
    name, now, before = match[1], match[2], match[4]
    if name not in {re.sub(r"\.(shape\[\d+\]|ndim)$", "", leaf) for leaf in cause.leaves}:
        return False
    return cause.kind != "weak-type" or "weak_type=" in now + before


def _structure(cause: Cause, text: str) -> bool:
    """Another structure, whichever way the place is said."""
    return "different input pytree" in text


def _function(cause: Cause, text: str) -> bool:
    """Never seen, and said to be one of several from there."""
    return "never seen function" in text and "seen another function" in text


def _first(cause: Cause, text: str) -> bool:
    return "never seen function" in text and "seen another function" not in text


def _static(cause: Cause, text: str) -> bool:
    """A value that is static; its place, which is said by number, is enough for its name."""
    return "different input pytree" in text and ("Static" in text or any(f"'{leaf}'" in text for leaf in cause.leaves))


def _context(cause: Cause, text: str) -> bool:
    """The setting by name; of a mesh, any setting that has to do with one."""
    return "Tracing context doesn't match" in text and any(leaf.removeprefix("jax_") in text for leaf in cause.leaves)


def _sharding(cause: Cause, text: str) -> bool:
    """A type that says how the right argument is spread: said where JAX traces for it."""
    match = re.search(r"different input types.*?\* at (.+?), now", text, re.DOTALL)
    return match is not None and match[1] in cause.leaves


def _text(cause: Cause, text: str) -> bool:
    """Of what only a lowering depends on, and of what was forgotten, JAX has no words: any that name it would do."""
    return any(word in re.sub(r"\S+\.py:\S+( \(.*?\))?|id=\d+", "", text) for word in (cause.kind, *cause.leaves))


_READ = {
    "first": _first,
    "shape": _types, "rank": _types, "dtype": _types, "weak-type": _types, "structure": _structure,
    "function": _function, "static": _static, "context": _context, "sharding": _sharding, "device": _text,
    "layout": _text, "committed": _text, "donation": _text, "options": _text, "evicted": _text,
}  # fmt: skip
