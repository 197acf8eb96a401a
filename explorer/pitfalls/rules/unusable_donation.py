"""A donated argument that no result can be written over: it is gone after the call, and no memory is saved."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from explorer.model.findings import Finding
from explorer.pitfalls.arguments import parameter_location
from explorer.pitfalls.evidence import Argument, Evidence
from explorer.pitfalls.rule import Rule
from explorer.pitfalls.syntax_trees import root_of


def check(evidence: Evidence) -> Iterator[Finding]:
    program = evidence.program
    arguments = evidence.arguments
    unusable: dict[str, list[Argument]] = defaultdict(list)
    for argument in _left_over([argument for argument in arguments if argument.donated], program.main.raw):
        unusable[root_of(argument.path)].append(argument)
    for root, several in unusable.items():
        first = several[0]
        more = f" and {len(several) - 1} more arrays of `{root}`" if len(several) > 1 else ""
        yield RULE.finding(
            f"{evidence.name} donates `{first.path}`{more}, and no result can take its memory: nothing is saved, and "
            "it is gone after the call",
            evidence=f"no result is left that is {_short(first.aval)}: there are "
            + (", ".join(dict.fromkeys(_short(output.aval) for output in program.main.raw.outvars)) or "none"),
            fix=f"leave `{root}` out of donate_argnums and donate_argnames, or return an array of its shape and dtype",
            **parameter_location(evidence, root),
        )


def _left_over(donated: Sequence[Argument], raw: Any) -> Sequence[Argument]:
    """The arguments without a result, paired as JAX does when it lowers: by shape and dtype first, then by size."""
    if not donated:
        return donated
    used = {id(operand) for equation in raw.eqns for operand in equation.invars} | set(map(id, raw.outvars))
    # JAX leaves out arguments that nothing uses, and keeps their arrays.
    donated = [argument for argument in donated if id(argument.variable) in used]
    free = [variable.aval for variable in raw.outvars]
    for key in (_type, _bytes):
        left: list[Argument] = []
        for argument in donated:
            keys = list(map(key, free))
            if key(argument.aval) in keys:
                del free[keys.index(key(argument.aval))]
            else:
                left.append(argument)
        donated = left
    return donated


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
