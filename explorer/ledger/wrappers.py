"""What a `jax.jit` was given beside its function."""

from __future__ import annotations

from typing import Any

from explorer._jax.arguments import unspecified
from explorer.ledger.functions import clean
from explorer.ledger.shardings import sharding_text


class Wrapper:
    """What a `jax.jit` was given, printed; only what isn't the default."""

    __slots__ = ("options", "wrapping")

    def __init__(self, wrapping: tuple[tuple[str, str], ...], options: tuple[tuple[str, str], ...]) -> None:
        self.wrapping = wrapping
        self.options = options


def read_wrapper(wrapper: Any) -> Wrapper:
    settings: list[tuple[str, str]] = []
    for name in ("in_shardings", "out_shardings", "in_layouts", "out_layouts"):
        leaves = tuple(getattr(wrapper, f"{name}_leaves", ()))
        if any(leaf is not None and leaf is not unspecified for leaf in leaves):
            settings.append((name, clean(", ".join(map(sharding_text, leaves)))))
    for name in ("static_argnums", "static_argnames", "donate_argnums", "donate_argnames", "device", "backend"):
        value = getattr(wrapper, name, None)
        if value is not None and value != ():
            settings.append((name, clean(str(value))))
    for name in ("keep_unused", "inline"):
        value = getattr(wrapper, name, False)
        text = str(getattr(value, "value", value))
        if text not in ("False", "auto"):
            settings.append((name, text))
    options = getattr(wrapper, "compiler_options_kvs", ())
    return Wrapper(tuple(settings), tuple(sorted((str(name), clean(str(value))) for name, value in options)))
