"""Types of results, for annotations and `isinstance`; `types.pyi` lists them."""

from __future__ import annotations

from explorer import _lazy

_PLACES = _lazy.names_of(__name__)
__all__ = sorted(_PLACES)  # pyright: ignore[reportUnsupportedDunderAll] - the stub lists them


def __getattr__(name: str) -> object:
    if name not in _PLACES:
        raise AttributeError(f"module 'explorer.types' has no attribute {name!r}")
    return globals().setdefault(name, _lazy.load(_PLACES[name], name))


def __dir__() -> list[str]:
    return list(__all__)
