"""What a traced program does on each line of the user's, in a few words: to tell programs of processes apart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import blake2b
from typing import Any, cast

from jax.extend.core import Literal

from explorer._jax.traces import user_stack

_PLAIN = (bool, int, float, str)  # values of parameters that print without addresses
_SHOWN = 6  # operations of a line by name; the others are in its digest


def program_lines(jaxpr: Any) -> str:
    """A text line for each of the source, `12 mul:float32[8] add:float32[8] #5c1f`: equal for equal programs.

    Operations of a loop's body and of inner functions count as of the line where they are written. Literals count too;
    names of variables and addresses don't.
    """
    lines: dict[int, list[str]] = {}
    for equation in _equations(getattr(jaxpr, "jaxpr", jaxpr)):
        stack = user_stack(getattr(equation.source_info, "traceback", None))
        lines.setdefault(stack[0].line if stack else 0, []).append(_operation(equation))
    return "\n".join(_line(number, operations) for number, operations in sorted(lines.items()))


def _line(number: int, operations: list[str]) -> str:
    digest = blake2b("\n".join(operations).encode(), digest_size=4).hexdigest()
    return " ".join([str(number), *(operation.partition("|")[0] for operation in operations[:_SHOWN]), f"#{digest}"])


def _operation(equation: Any) -> str:
    types = ",".join(_type(variable.aval) for variable in equation.outvars)
    literals = ",".join(str(variable.val) for variable in equation.invars if isinstance(variable, Literal))
    params = ",".join(f"{name}={value}" for name, value in equation.params.items() if isinstance(value, _PLAIN))
    return f"{equation.primitive.name}:{types}|{literals}|{params}"


def _type(aval: Any) -> str:
    shape = getattr(aval, "shape", None)
    return str(aval) if shape is None else f"{aval.dtype}[{','.join(map(str, shape))}]"


def _equations(jaxpr: Any) -> Iterator[Any]:
    for equation in jaxpr.eqns:
        yield equation
        for value in equation.params.values():
            several = cast("Sequence[Any]", value if isinstance(value, (tuple, list)) else (value,))
            for each in several:
                inner = getattr(each, "jaxpr", each)
                if hasattr(inner, "eqns"):
                    yield from _equations(inner)
