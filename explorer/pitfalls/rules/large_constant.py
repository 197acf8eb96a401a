"""Arrays that a function takes from outside: they become part of the compiled program."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np

from explorer.capture.safe_reading import is_a
from explorer.model.findings import Finding
from explorer.pitfalls.equations import Body, Equation, Program
from explorer.pitfalls.evidence import Evidence, reachable_values
from explorer.pitfalls.function_source import frame_location, root_of
from explorer.pitfalls.rule import rule

_LARGE = 1_000_000  # bytes
_SAMPLE = 64  # elements


@dataclass
class _Group:
    paths: list[str] = field(default_factory=list[str])
    types: list[str] = field(default_factory=list[str])
    bytes: int = 0
    first: Any = None


@rule("large-constant", "EX013", "warning", "jit-compilation.html", passive=True)
def large_constant(evidence: Evidence) -> Iterator[Finding]:
    """A large array from outside is compiled into the program instead of being passed to it."""
    program = evidence.program
    # One array may be a constant of several jitted functions.
    held = {id(const): (const, body, name) for body in program.bodies[::-1] for name, const in body.consts.items()}
    if sum(_bytes(const) for const, _, _ in held.values()) < _LARGE:
        return
    groups: dict[str, _Group] = {}
    for i, (const, path) in enumerate(_named(evidence, [const for const, _, _ in held.values()])):
        group = groups.setdefault(root_of(path) or f"constant {i}", _Group(first=held[id(const)][1:]))
        group.paths.append(path)
        group.types.append(jax.typeof(const).str_short(short_dtypes=True))
        group.bytes += _bytes(const)
    for root, group in groups.items():
        if group.bytes >= _LARGE:
            yield _finding(evidence, program, root, group)


def _finding(evidence: Evidence, program: Program, root: str, group: _Group) -> Finding:
    use = _first_use(program, *group.first)
    path, count = group.paths[0], len(group.paths)
    what = f"`{path}` is a constant" if path else "an array made in Python is a constant"
    if count > 1:
        what = f"the {count} arrays of `{root}` are constants"
    if not path:
        fix = f"make it outside of {evidence.name} and pass it, or make it with jax.numpy, which does so in the program"
    elif root == "self":
        fix = "make the object's arrays an argument: register it as a pytree, or pass them apart from it"
    else:
        fix = f"make it an argument: {evidence.name}(…, {root})"
    size = f"{group.bytes / 1e9:.1f} GB" if group.bytes >= 1e9 else f"{group.bytes / 1e6:.1f} MB"
    return large_constant.finding(
        f"{what} of the compiled {evidence.name}: {size} are in the program, and a change of it later isn't seen",
        evidence=f"{', '.join(dict.fromkeys(group.types[:4]))}: {group.bytes:,} bytes, from outside of the arguments",
        fix=fix,
        **frame_location(program.called_from(use) if use is not None else None),
    )


def _named(evidence: Evidence, consts: Sequence[Any]) -> Iterator[tuple[Any, str]]:
    """Yield the constants with their paths from outside. NumPy arrays are matched by content."""
    arrays = [(path, value) for path, value in reachable_values(evidence).items() if is_a(value, jax.Array, np.ndarray)]
    by_identity = {id(value): path for path, value in arrays}
    for const in consts:
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


def _first_use(program: Program, body: Body, variable: Any) -> Equation | None:
    for equation in body.equations:
        for i, operand in enumerate(equation.inputs):
            if operand is not variable:
                continue
            if equation.is_call and not equation.inner[0].is_of_jax:
                inner = equation.inner[0]
                return _first_use(program, inner, inner.raw.invars[i]) or equation
            return equation
    return None


def _bytes(const: Any) -> int:
    return int(getattr(const, "nbytes", 0))
