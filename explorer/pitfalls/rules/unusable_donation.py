"""A donated argument that no result can be written over: it is gone after the call, and no memory is saved."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from explorer.model.findings.finding import Finding
from explorer.pitfalls.arguments import Argument, arguments_of, parameter_location, root_of
from explorer.pitfalls.evidence import Evidence
from explorer.pitfalls.rule import Rule

__all__ = ["RULE"]


def check(evidence: Evidence) -> Iterator[Finding]:
    program = evidence.program
    arguments = arguments_of(evidence)
    if program is None or not any(argument.donated for argument in arguments):
        return
    unusable: dict[str, list[Argument]] = defaultdict(list)
    for argument in _left_over([one for one in arguments if one.donated], program.main.raw):
        unusable[root_of(argument.path)].append(argument)
    for root, several in unusable.items():
        one = several[0]
        what = f"`{one.path}`" if len(several) == 1 else f"`{one.path}` and {len(several) - 1} more arrays of `{root}`"
        yield RULE.finding(
            f"{evidence.name} donates {what}, and no result can take its memory: nothing is saved, and it is gone "
            "after the call",
            evidence=f"no result is left that is {_short(one.aval)}: there are "
            + (", ".join(dict.fromkeys(_short(output.aval) for output in program.main.raw.outvars)) or "none"),
            fix=f"leave `{root}` out of donate_argnums and donate_argnames, or return an array of its shape and dtype",
            **parameter_location(evidence, root),
        )


def _left_over(donated: Sequence[Argument], raw: Any) -> Iterator[Argument]:
    """The arguments without a result, paired as JAX does when it lowers: by shape and dtype first, then by size."""
    used = {id(operand) for equation in raw.eqns for operand in equation.invars} | set(map(id, raw.outvars))
    donated = [one for one in donated if id(one.variable) in used]  # JAX leaves out the others, and keeps their arrays
    free = [variable.aval for variable in raw.outvars]
    for key in (_type, _bytes):
        results = Counter(map(key, free))
        left: list[Argument] = []
        for argument in donated:
            kind = key(argument.aval)
            if results[kind] > 0:
                results[kind] -= 1
                free.remove(next(aval for aval in free if key(aval) == kind))
            else:
                left.append(argument)
        donated = left
    yield from donated


def _type(aval: Any) -> tuple[str, str]:
    return str(aval.shape), str(aval.dtype)


def _bytes(aval: Any) -> str:
    """Equal for arrays of as many bytes; of as many elements, where the size of one isn't known."""
    try:
        return str(aval.size * aval.dtype.itemsize)
    except (AttributeError, TypeError):  # of an extended dtype, such as that of keys
        return f"{aval.size} {aval.dtype}"


def _short(aval: Any) -> str:
    return aval.str_short(short_dtypes=True)


RULE = Rule(
    "unusable-donation",
    "EX020",
    "warning",
    "A donated argument can only be used for a result of the same shape and dtype.",
    "https://docs.jax.dev/en/latest/buffer_donation.html",
    check,
    passive=True,
)
