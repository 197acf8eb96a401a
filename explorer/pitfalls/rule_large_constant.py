"""Arrays that a function takes from outside: they become part of the compiled program."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import jax
import numpy as np

from explorer.capture.safe_reading import is_a
from explorer.model.findings import Finding
from explorer.model.text import root_of
from explorer.pitfalls.equations import Body, Equation
from explorer.pitfalls.evidence import Evidence, reachable_values
from explorer.pitfalls.function_source import frame_location
from explorer.pitfalls.rule import rule

_LARGE = 1_000_000  # bytes
_SAMPLE = 64  # elements


@rule("large-constant", "EX013", "warning", "jit-compilation.html", passive=True)
def large_constant(evidence: Evidence) -> Iterator[Finding]:
    """A large array from outside is compiled into the program instead of being passed to it."""
    program = evidence.program
    # One array may be a constant of several jitted functions.
    held = {id(const): (const, body, name) for body in program.bodies[::-1] for name, const in body.consts.items()}
    if sum(_bytes(const) for const, _, _ in held.values()) < _LARGE:
        return
    groups: dict[str, list[tuple[Any, str]]] = {}
    for i, (const, path) in enumerate(_named(evidence, held.values())):
        groups.setdefault(root_of(path) or f"constant {i}", []).append((const, path))
    for root, group in groups.items():
        if sum(_bytes(const) for const, _ in group) >= _LARGE:
            yield _finding(evidence, root, group, _first_use(*held[id(group[0][0])][1:]))


def _finding(evidence: Evidence, root: str, group: list[tuple[Any, str]], use: Equation | None) -> Finding:
    path, count, total = group[0][1], len(group), sum(_bytes(const) for const, _ in group)
    types = dict.fromkeys(jax.typeof(const).str_short(short_dtypes=True) for const, _ in group[:4])
    what = f"`{path}` is a constant" if path else "an array made in Python is a constant"
    if count > 1:
        what = f"the {count} arrays of `{root}` are constants"
    if not path:
        fix = f"make it outside of {evidence.name} and pass it, or make it with jax.numpy, which does so in the program"
    elif root == "self":
        fix = "make the object's arrays an argument: register it as a pytree, or pass them separately"
    else:
        fix = f"make it an argument: {evidence.name}(…, {root})"
    size = f"{total / 1e9:.1f} GB" if total >= 1e9 else f"{total / 1e6:.1f} MB"
    return large_constant.finding(
        f"{what} of the compiled {evidence.name}: {size} are in the program, and later changes have no effect",
        evidence=f"{', '.join(types)}: {total:,} bytes, not passed as arguments",
        fix=fix,
        **frame_location(evidence.program.called_from(use) if use is not None else None),
    )


def _named(evidence: Evidence, held: Iterable[tuple[Any, ...]]) -> Iterator[tuple[Any, str]]:
    """Yield each constant with the path that it has outside, "" if unknown. NumPy arrays are matched by content."""
    arrays = [(path, value) for path, value in reachable_values(evidence).items() if is_a(value, jax.Array, np.ndarray)]
    by_identity = {id(value): path for path, value in arrays}
    for const, *_ in held:
        path = by_identity.get(id(const), "")
        if not path and _bytes(const) >= _LARGE // 100 and not is_a(const, jax.Array):
            path = next((path for path, value in arrays if same_array(const, value)), "")
        yield const, path


def same_array(const: Any, value: Any) -> bool:
    """Return True if a constant was made of a NumPy array, by shape and a sample of elements."""
    if type(value) is not np.ndarray or const.shape != value.shape or value.dtype.kind not in "biufc":
        return False
    elements = np.asarray(const).reshape(-1)
    places = np.linspace(0, value.size - 1, min(_SAMPLE, value.size), dtype=int)
    with np.errstate(all="ignore"):
        other = np.asarray([value[np.unravel_index(i, value.shape)] for i in places]).astype(elements.dtype)
    return bool(np.array_equal(elements[places], other, equal_nan=elements.dtype.kind in "fc"))


def _first_use(body: Body, variable: Any) -> Equation | None:
    for equation in body.equations:
        for i, operand in enumerate(equation.inputs):
            if operand is not variable:
                continue
            if equation.is_call and not equation.inner[0].is_of_jax:
                inner = equation.inner[0]
                return _first_use(inner, inner.raw.invars[i]) or equation
            return equation
    return None


def _bytes(const: Any) -> int:
    return int(getattr(const, "nbytes", 0))
