"""Static values as parts, so that a change is named by the path that a user would write: `cfg.optimizer.lr`.

A part is (path, text, number): the number is equal for equal values, 0 if unknown. A part with a negative number has
the class of an object: two classes of one name are one that was defined again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from hashlib import blake2b
from typing import Any, cast

from explorer.ledger.functions import Equals, Identities, clean

Part = tuple[str, str, int]

_LONGEST = 2_000  # characters of one value
_MOST = 256  # parts of one value; what is inside of a larger one is one text with a digest
_DEEPEST = 12
_INNER = ("flax.nnx.", "equinox._")  # modules with dataclasses whose fields no user wrote: a GraphDef, a bound method
_equals = Equals(4_096)  # JAX's own caches hold static values as well
_identities = Identities()


def parts_of(value: Any, path: str = "") -> list[Part]:
    """Return the parts of a value in preorder, each container before its contents, with the paths behind `path`."""
    parts: list[Part] = []
    rest: list[tuple[str, Any, int]] = [(path, value, 0)]
    while rest:
        at, value, depth = rest.pop()
        if _is_of_a_class(value):
            parts.append(class_part(at, cast("type[Any]", type(value))))
        inside = list(_inside(value)) if depth < _DEEPEST else []
        if not inside or len(parts) + len(rest) + len(inside) > _MOST:
            parts.append((at, print_value(value), number_of(value)))
            continue
        if not hasattr(value, "_fields") and not is_dataclass(value):
            parts.append((at, f"{len(inside)} item{'s' * (len(inside) != 1)}", 0))
        rest += [(at + step, held, depth + 1) for step, held in reversed(inside)]
    return parts


def class_part(path: str, kind: type) -> Part:
    return path, kind.__name__, -_identities.of(kind)


def number_of(value: Any) -> int:
    """Return a number that is equal for values that JAX's caches treat as equal; 0 if they can't be compared."""
    # Objects without `__eq__` are held weakly: they may be as large as a model.
    return _identities.of(value) if type(value).__eq__ is object.__eq__ else _equals.of(value)


def print_value(value: Any) -> str:
    """Return the repr without addresses, or a callable's name; a long repr as its start and a digest, so that
    differences remain visible.
    """
    if callable(value) and isinstance(name := getattr(value, "__qualname__", None), str):
        return name.rpartition("<locals>.")[2]
    try:
        text = repr(value)
        text = clean(text, len(text))
    except Exception:  # the user's own
        return f"<{type(value).__qualname__}>"
    if len(text) <= _LONGEST:
        return text
    digest = blake2b(text.encode(errors="surrogatepass"), digest_size=4).hexdigest()
    return f"{text[:_LONGEST]}… ({len(text):,} characters, {digest})"


def _inside(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield (step, value) for each item or compared field; nothing for other values."""
    if is_dataclass(value) and not isinstance(value, type):
        if type(value).__module__.startswith(_INNER):
            return
        for field in fields(value):
            if field.compare and hasattr(value, field.name):
                yield f".{field.name}", getattr(value, field.name)
    elif isinstance(value, tuple) and (names := getattr(cast("Any", value), "_fields", None)) is not None:
        items = cast("tuple[Any, ...]", value)
        if all(map(callable, items)):
            return  # an optimizer of optax's: its functions were made with the whole, which is what its user knows
        yield from ((f".{name}", held) for name, held in zip(names, items, strict=True))
    elif isinstance(value, Mapping):
        yield from ((f"[{print_value(name)}]", held) for name, held in cast("Mapping[Any, Any]", value).items())
    elif isinstance(value, tuple | list):
        yield from ((f"[{i}]", held) for i, held in enumerate(cast("tuple[Any, ...]", value)))


def _is_of_a_class(value: Any) -> bool:
    return not isinstance(value, type) and _is_of_users(cast("type[Any]", type(value)))


@cache
def _library(module: str) -> bool:
    return module.partition(".")[0] in ("builtins", "functools", "collections", "types", "jax", "jaxlib", "numpy")


def _is_of_users(kind: type) -> bool:
    """Return True for a class that a cell or a module may define again: not one of Python, JAX or NumPy."""
    return not _library(kind.__module__ or "")
