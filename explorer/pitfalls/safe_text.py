"""Values in words, without running code of the user's."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from explorer.capture.safe_reading import class_name, is_a, is_exactly, is_plain, is_tracer, kind_of

_LONGEST = 40


def safe_text(value: Any) -> str:
    """`3.0`, `a list of 2`, `float32[3]`, `a Model`: a value as a message names it."""
    kind = kind_of(value)
    if value is ...:
        return "nothing"
    if is_tracer(value):
        return f"a traced {value.aval.str_short()}"
    if is_plain(value):
        text = repr(value[:_LONGEST] if is_exactly(value, str, bytes) else value)
        return text if len(text) <= _LONGEST + 2 else f"{text[:_LONGEST]}…"
    if is_a(value, np.generic) or kind is np.ndarray or is_a(value, jax.Array):
        return _array(value)
    if is_exactly(value, list, tuple, set, frozenset, dict):
        return f"{'an empty' if not value else 'a'} {kind.__name__}{f' of {len(value)}' if value else ''}"
    return f"a {class_name(kind).rpartition('.')[2]}"


def _array(value: Any) -> str:
    kind = f"{value.dtype.name}[{','.join(map(str, value.shape))}]"
    # A number is worth saying; that of JAX's may be on a device, or deleted.
    if value.shape == () and kind_of(value).__module__ == "numpy" and not value.dtype.hasobject:
        return f"{kind}({value})"
    return f"a NumPy {kind}" if kind_of(value) is np.ndarray else kind
