"""What the path of an operation says: transforms, scopes, calls and its primitive, the same in every stage's notation.

The jaxpr writes `transpose(jvp())/mul` in the group of a call to `g`; StableHLO and HLO write
`jit(f)/transpose(jvp(jit(g)))/mul`.
"""

from __future__ import annotations

from typing import NamedTuple

_BODIES = ("closed_call", "eval_jaxpr")  # what a scan was given, inside of the loop that it becomes: until 0.10, since
_CALLS = frozenset(["jit", "pjit", "xla_call"])
# Words that lowering adds around what is inside of a loop, a branch or a call, and the jaxpr's equations don't have.
CONTROL = frozenset(
    [
        *("while", "scan", "body", "body_pred", "cond", "core_call", "checkpoint", "remat", "remat2", "pjit", ""),
        *_BODIES,
        *("custom_jvp_call", "custom_vjp_call", "custom_vjp_call_jaxpr", "custom_lin", "shard_map", "xla_call"),
    ]
)
_SAME = {"scan": "while", "pjit": "jit"}  # primitives that lowering renames


class ParsedPath(NamedTuple):
    """A path of scopes.

    Args:
        transforms: `transpose`, `jvp`, `vmap`, as they stand, the outermost first.
        names: Named scopes, called functions (`jit:g`) and branches (`branch:1`) around it, sorted: stages differ in
            their order.
        primitive: What it does; of a call `jit`, and its name is among `names`.
        loops: How many loops it is inside of.
        is_body: Whether it is of the body that a `scan` was given, not of the counting around it.
    """

    transforms: tuple[str, ...]
    names: tuple[str, ...]
    primitive: str
    loops: int = 0
    is_body: bool = False


def parse_path(path: str) -> ParsedPath:
    """Parse one path; XLA's joined ones are to be taken apart at `;` before.

    Example:
        >>> parse_path("jit(f)/transpose(jvp(jit(g)))/while/body/mul")
        ParsedPath(transforms=('transpose', 'jvp'), names=('jit:g',), primitive='mul', loops=1, is_body=False)
    """
    transforms: list[str] = []
    names: list[str] = []
    loops, is_body, last = 0, False, ""
    segments = path.split("/")
    for position, segment in enumerate(segments):
        word = segment
        while word.endswith(")") and "(" in word:
            head, _, word = word[:-1].partition("(")
            if head in _CALLS:
                if position:  # the first is the program itself
                    names.append(f"jit:{word}")
                word = "jit"
                break
            transforms.append(head)
        last = word
        if position == len(segments) - 1:
            break
        if word == "while":
            loops, is_body = loops + 1, False
        elif word in _BODIES:
            is_body = loops > 0
        elif word.startswith("branch_") and word.endswith("_fun"):
            names.append(f"branch:{word[7:-4]}")
        elif word not in CONTROL and word != "jit":
            names.append(word)
    return ParsedPath(tuple(transforms), tuple(sorted(names)), _SAME.get(last, last), loops, is_body)


def phase(scope: str) -> str:
    """`backward`, `forward` or empty: JAX marks what differentiation made as `transpose(jvp(…))` and `jvp(…)`."""
    if "transpose(" in scope:
        return "backward"
    return "forward" if "jvp(" in scope else ""
