"""A random key that is used twice gives the same numbers twice; one that is made in the function gives them each call.

Two values are the same key if the same operations on the same values make them: `keys[0]` here and `keys[0]` there. A
raw key and the typed one made of it are one key. `fold_in` makes another key, and uses none up.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, takewhile
from types import MethodType, ModuleType
from typing import Any, cast

import jax
import numpy as np

from explorer._jax.traces import called_through
from explorer.capture.safe_reading import attributes, class_name, is_a, is_exactly, is_plain, is_tracer, kind_of
from explorer.capture.sources import syntax_at
from explorer.model.findings import Finding
from explorer.model.graph import Frame
from explorer.model.stage import is_library_file
from explorer.pitfalls.equations import Body, Equation, Program, is_literal, liveness
from explorer.pitfalls.evidence import Evidence
from explorer.pitfalls.function_source import FunctionSource, frame_location, span_of
from explorer.pitfalls.rule import rule
from explorer.pitfalls.rules.unrolled_loop import loop_around

_USES = ("random_bits", "random_split", "random_gamma")
_SAME = ("random_wrap", "random_unwrap", "copy", "copy_p")
# What gives the same for the same: enough to follow a key through indices and arithmetic on them.
_PURE = (
    *("slice", "squeeze", "reshape", "broadcast_in_dim", "dynamic_slice", "gather", "transpose", "rev", "concatenate"),
    *("random_fold_in", "random_seed", "lt", "add", "sub", "mul", "select_n", "convert_element_type", "unstack"),
)
_LOOPS = ("scan", "while")
_SMALL = 256  # bytes: a key has 8 or 16, some keys a few more


@dataclass(frozen=True)
class Value:
    """A value as what makes it.

    Args:
        number: Equal for equal values.
        bodies: Where what it is made of comes from.
        seeds: Where it starts, if nothing of it is an argument of the function; else empty.
    """

    number: int
    bodies: frozenset[Body] = frozenset()
    seeds: frozenset[Any] = frozenset()
    is_constant: bool = True


class _Values:
    """The values of a program's variables, numbered so that equal ones have equal numbers."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.known: dict[tuple[int, Any], Value] = {}
        self.numbers: dict[Hashable, int] = {}

    def of(self, body: Body, atom: Any) -> Value:
        body, atom = self.program.origin(body, atom)
        if is_literal(atom):
            seeds = frozenset([id(atom.val)] if str(atom.aval.dtype).startswith("key<") else ())
            return Value(self.number("constant", _bytes(atom.val), str(atom.aval)), seeds=seeds)
        key = id(body), atom
        if key not in self.known:
            self.known[key] = self.make(body, atom)
        return self.known[key]

    def make(self, body: Body, atom: Any) -> Value:
        maker = body.makers.get(atom)
        if maker is None:
            return self.given(body, atom)
        operands = [self.of(body, operand) for operand in maker.inputs]
        if maker.op in _SAME:
            return operands[0]
        is_constant = all(operand.is_constant for operand in operands)
        own = [maker] if maker.op == "random_seed" and is_constant else []
        seeds = frozenset[Any](own).union(*(operand.seeds for operand in operands))
        bodies = frozenset[Body]().union(*(operand.bodies for operand in operands))
        output = list(map(id, maker.outputs)).index(id(atom))
        if maker.op not in _PURE:  # it may give another value each time, or its parameters say too little
            number = self.number("made", id(maker), output)
            return Value(number, bodies | {body}, seeds, is_constant and maker.op == "random_split")
        params = tuple(sorted((name, str(value)) for name, value in maker.params.items()))
        number = self.number(maker.op, output, params, *(operand.number for operand in operands))
        return Value(number, bodies, seeds, is_constant)

    def given(self, body: Body, atom: Any) -> Value:
        """A constant of a jaxpr, or an input."""
        if atom in body.consts:
            # By its numbers: JAX makes a constant of each of two equal arrays.
            number = self.number("constant", _bytes(body.consts[atom]), str(atom.aval))
            return Value(number, frozenset([body]), frozenset([atom]))
        return Value(self.number("input", id(body), id(atom)), frozenset([body]), is_constant=False)

    def number(self, *what: Hashable) -> int:
        return self.numbers.setdefault(what, len(self.numbers))


def _bytes(value: Any) -> Hashable:
    """What is equal for equal small arrays; the address of a larger one, whose numbers may be on a device."""
    data = jax.random.key_data(value) if is_a(value, jax.Array) and str(value.dtype).startswith("key<") else value
    return np.asarray(data).tobytes() if getattr(data, "nbytes", 0) <= _SMALL else id(value)


@rule("key-reuse", "EX018", "warning", "random-numbers.html", passive=True)
def key_reuse(evidence: Evidence) -> Iterator[Finding]:
    """A random key that is used twice gives the same numbers twice."""
    program = evidence.program
    uses = list(filter(_is_forward, program.of(*_USES)))
    if not uses:
        return
    values = _Values(program)
    # Keys that are split for nobody, and numbers that nobody takes, are no second use.
    dead = set(map(id, liveness(program)[1]))
    uses = [use for use in uses if not any(id(one) in dead for one in (use, *use.callers()))]
    used = [(use, values.of(use.body, use.inputs[0])) for use in uses]
    yield from _constant(evidence, program, used)
    yield from _twice(evidence, program, used)
    yield from _shared(evidence, program, used)


def _twice(evidence: Evidence, program: Program, uses: list[tuple[Equation, Value]]) -> Iterator[Finding]:
    before: dict[int, list[Equation]] = defaultdict(list)
    reported: set[Frame] = set()
    for use, value in uses:
        frame = program.called_from(use)
        if frame is None:
            continue
        earlier = next((other for other in before[value.number] if _again(program, other, use)), None)
        before[value.number].append(use)
        place, frame = (None, frame) if earlier is None else _places(program, earlier, use, frame)
        loop = _loop_around(program, use, value) if earlier is None else None
        if (earlier is None and loop is None) or frame in reported:
            continue
        text = _used_earlier(use, earlier, place, frame) if earlier is not None else _used_in_loop(use, loop)
        # Two places that draw with one key are two draws, whoever keeps it.
        is_one_place = earlier is None or program.stack(earlier)[:1] == program.stack(use)[:1]
        holder = key_holder(evidence, _frames_inside(program, use, earlier or loop)) if is_one_place else ""
        reported.add(frame)
        yield _finding_of_use(evidence, *text, holder, frame)


def _finding_of_use(evidence: Evidence, what: str, seen: str, fix: str, holder: str, frame: Frame) -> Finding:
    kept = f"; the key is one that {holder} keeps: each call of it draws the same, as a random function has to"
    return key_reuse.finding(
        f"{evidence.name} uses a random key that it used {what}: the numbers are the same",
        evidence=seen + (kept if holder else ""),
        fix=fix,
        severity="note" if holder else None,
        **frame_location(frame),
    )


def _places(program: Program, earlier: Equation, use: Equation, frame: Frame) -> tuple[Frame | None, Frame]:
    """Where two uses stand; of two in one line, that of a function which was called twice, where it was called."""
    before = program.called_from(earlier)
    if before == frame:
        calls = zip(reversed(_users_stack(program, earlier)), reversed(_users_stack(program, use)), strict=False)
        return next(((one, other) for one, other in calls if one != other), (before, frame))
    return before, frame


def _frames_inside(program: Program, use: Equation, other: Equation | None) -> tuple[Frame, ...]:
    """The user's frames of a use that aren't another equation's too: from where the two part inwards."""
    stack = _users_stack(program, use)
    outer = _users_stack(program, other) if other is not None else ()
    pairs = zip(reversed(stack), reversed(outer), strict=False)
    return stack[: len(stack) - sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))]


def _users_stack(program: Program, equation: Equation) -> tuple[Frame, ...]:
    return tuple(frame for frame in program.stack(equation) if not is_library_file(frame.file))


def _used_earlier(use: Equation, earlier: Equation, before: Frame | None, frame: Frame) -> tuple[str, str, str]:
    """Where the key was used before, the two uses, and the cure, in words."""
    line = f"line {before.line}" if before is not None and before.file == frame.file else "another place"
    what = f"on {line} already" if before != frame else "again each time this line runs"
    seen = f"{_use(earlier)} on {line} and {_use(use)} here, with one and the same key"
    return what, seen, "key, subkey = jax.random.split(key) before each use, and use the subkey once"


def _loop_around(program: Program, use: Equation, value: Value) -> Equation | None:
    """The loop whose body a use is in with a key from outside of it; None if there is none, or it is a library's.

    A library that draws in a loop of its own was given the key once, and knows what it does with it.
    """
    loop = next((body.caller for body in use.body.outwards() if _repeats_key(body, value)), None)
    if loop is not None and program.frame(use) is None:
        # JAX cuts some stacks at the loop's body: nothing of the user's is known to be in it then.
        return loop if _users_stack(program, use) not in ((), _users_stack(program, loop)) else None
    return loop


def _used_in_loop(use: Equation, loop: Equation | None) -> tuple[str, str, str]:
    """The same of a use in a loop's body with a key from outside of it."""
    seen = f"{_use(use)} in the body of {loop.op if loop else 'a loop'}, with a key that is the same in each turn"
    fix = "jax.random.fold_in(key, i) in the loop, or one key per turn: jax.random.split(key, n)"
    return "in each turn of the loop", seen, fix


def _repeats_key(loop: Body, value: Value) -> bool:
    """Whether a jaxpr is the body of a loop of several turns, and the key comes from outside of it."""
    is_loop = loop.caller is not None and loop.caller.op in _LOOPS and loop.caller.params.get("length", 2) > 1
    return is_loop and not any(outer is loop for body in value.bodies for outer in body.outwards())


def _constant(evidence: Evidence, program: Program, uses: list[tuple[Equation, Value]]) -> Iterator[Finding]:
    reported: set[Any] = set()
    for use, value in uses:
        seed = next(iter(value.seeds), None)
        if use.op == "random_split" or not value.is_constant or seed is None or seed in reported:
            continue
        reported.add(seed)
        is_made = isinstance(seed, Equation)
        frame = program.called_from(seed if is_made else use)
        is_users = program.frame(use) is not None and bool(program.main.raw.invars)
        yield key_reuse.finding(
            f"the random numbers of {evidence.name} are the same in each call: "
            + (_made(frame) if is_made else "its key is a constant of the program"),
            evidence="numbers are drawn with a key that depends on no argument",
            fix=f"pass the key as an argument: {evidence.name}(…, key=key), with a new one for each call",
            severity="warning" if is_users else "note",
            **frame_location(frame),
        )


def _made(frame: Frame | None) -> str:
    """How a key came to be that depends on no argument: `jax.random.key(0)`, or of a clock."""
    way = syntax_at(frame.file, span_of(frame)) if frame is not None else ()
    given = way[-1].args if way and isinstance(way[-1], ast.Call) else []
    computed = any(isinstance(part, ast.Call) for node in given for part in ast.walk(node))
    return "its key is made once, while it is traced" if computed else "its key is made from a constant"


def _shared(evidence: Evidence, program: Program, uses: list[tuple[Equation, Value]]) -> Iterator[Finding]:
    """Draws in what is vmapped, with one key for all of it."""
    reported: set[Frame] = set()
    for use, value in uses:
        frame = program.called_from(use)
        if use.op == "random_split" or frame is None or frame in reported or not _is_for_all(use, value):
            continue
        reported.add(frame)
        holder = key_holder(evidence, _users_stack(program, use)) or mapped_object(evidence, frame)
        seen = "the key has no axis that is mapped over, so that it draws once, and what it draws is shared"
        yield key_reuse.finding(
            f"{evidence.name} draws in jax.vmap with one key for all: each mapped element gets the same numbers",
            evidence=seen + (f"; {holder} may keep the key: a random function is the same for all" if holder else ""),
            fix="give each element a key of its own: jax.vmap(f)(xs, jax.random.split(key, len(xs))), with the key as "
            "an argument that is mapped over",
            severity="note" if holder else None,
            **frame_location(frame),
        )


def _is_for_all(use: Equation, value: Value) -> bool:
    """Whether a draw is in a vmapped function, and its key is not mapped over, nor a constant that is made there."""
    if "vmap(" not in use.transform or use.inputs[0].aval.shape or value.is_constant:
        return False
    outermost = [use, *use.callers()][-1]
    # jax.jacfwd maps over directions, for which the numbers have to be the same.
    return not called_through(outermost.raw.source_info.traceback, "jacfun", "hessian")


def _use(equation: Equation) -> str:
    return "a split" if equation.op == "random_split" else "a draw"


def _is_forward(equation: Equation) -> bool:
    """Not what a derivative computes again, on purpose from the same key."""
    recomputed = any(caller.params.get("differentiated") for caller in equation.callers())
    return "transpose" not in equation.transform and not recomputed


def _again(program: Program, one: Equation, other: Equation) -> bool:
    """Whether both run in one call, and the user's code asked for each of them."""
    branches = {id(body.caller): body for body in one.body.outwards() if body.caller and body.caller.op == "cond"}
    if any(branches.get(id(body.caller), body) is not body for body in other.body.outwards()):
        return False
    if program.frame(one) is None or program.frame(other) is None:  # what a library does with a key it was given
        return _users_stack(program, one) != _users_stack(program, other) or _are_turns(program, one, other)
    return program.owner(one) is not program.owner(other)


def _are_turns(program: Program, one: Equation, other: Equation) -> bool:
    """Whether one line of a library's made both, in two turns of a loop of the user's, and not of one of its own."""
    stack = program.stack(one)
    if stack != program.stack(other):
        return False
    inner = list(takewhile(lambda frame: is_library_file(frame.file), stack))
    users = [frame for frame in stack[len(inner) :] if not is_library_file(frame.file)]
    return any(map(_is_in_loop, users)) and not any(map(_is_in_loop, inner))


def _is_in_loop(frame: Frame) -> bool:
    return loop_around(frame.file, span_of(frame)) is not None


_DEEPEST = 4  # equinox keeps a bound method's object two attributes below it
_MOST = 64  # attributes or items of one container


def key_holder(evidence: Evidence, frames: Sequence[Frame]) -> str:
    """The class of an object that keeps a key and whose method one of some frames calls; empty if there is none.

    Args:
        frames: Of one stack, innermost first. The outermost is who calls: what it is a method of doesn't count, and
            none keeps the key if it hands one over.
    """
    for i, frame in reversed(list(enumerate(frames))):
        source, node = _call_at(evidence, frame)
        if source is None:
            continue
        is_outermost = i == len(frames) - 1
        if node is not None and is_outermost and _hands_key_over(evidence, source, node):
            return ""
        own = [] if is_outermost else [source.executed.owner]
        callees = [] if node is None else _receivers(evidence, source, node)
        holder = next((value for value in (*own, *callees) if _holds_key(value)), None)
        if holder is not None:
            owner = attributes(holder).get("__self__", holder)  # equinox has bound methods of its own
            return class_name(kind_of(owner)).rpartition(".")[2]
    return ""


def mapped_object(evidence: Evidence, frame: Frame) -> str:
    """The object of which a frame's call maps a method, as `path` in `jax.vmap(path.at)(times)`; empty for none.

    What it keeps isn't known: it is a local variable of a function that has returned.
    """
    source, node = _call_at(evidence, frame)
    match node:
        case ast.Call(func=ast.Call(args=[ast.Attribute(value=ast.Name() as owner), *_])) if source is not None:
            return owner.id if source.value(owner) is ... else ""
        case _:
            return ""


def _call_at(evidence: Evidence, frame: Frame) -> tuple[FunctionSource | None, ast.Call | None]:
    """The innermost of the user's functions that a frame's line is in, and the call there."""
    around = (
        function
        for function in evidence.functions
        if function.file == frame.file and function.node.lineno <= frame.line <= (function.node.end_lineno or 0)
    )
    source = max(around, key=lambda function: function.node.lineno, default=None)
    return source, source.call_at(span_of(frame)) if source is not None else None


def _hands_key_over(evidence: Evidence, source: FunctionSource, node: ast.Call) -> bool:
    """Whether an argument of a call is made of a key."""
    calls = [call for call, _, other in evidence.call_nodes() if other is node]
    types = {name: kind for call in calls for name, kind in call.traced.items()}
    arguments = [*node.args, *(keyword.value for keyword in node.keywords)]
    parts = [part for argument in arguments for part in ast.walk(argument)]
    return any(
        _is_key_type(types.get(part.id, "")) if isinstance(part, ast.Name) else _is_key(source.resolve(part))
        for part in parts
        if isinstance(part, (ast.Name, ast.Attribute))
    )


def _is_key_type(text: str) -> bool:
    return "key<" in text or text.endswith(("uint32[2]", "uint32[4]"))


def _receivers(evidence: Evidence, source: FunctionSource, node: ast.Call) -> list[Any]:
    """The object that a call is a method of, or calls itself, as far as it is known."""
    callee = source.resolve(node.func)
    if callee is not ... and not is_exactly(callee, MethodType):
        return [callee]
    recorded = [call.receiver for call, _, other in evidence.call_nodes() if other is node]
    # 3.11 doesn't see the object of a method that is behind a descriptor, as equinox's are.
    return [*recorded, source.resolve(getattr(node.func, "value", node.func))]


def _holds_key(value: Any, depth: int = 0) -> bool:
    if is_tracer(value) or is_a(value, jax.Array):
        return _is_key(value)
    if value is ... or is_plain(value) or is_a(value, ModuleType) or depth > _DEEPEST:
        return False
    return any(_holds_key(item, depth + 1) for item in islice(_inside(value), _MOST))


def _inside(value: Any) -> Iterable[Any]:
    if is_exactly(value, list, tuple):
        return cast(Iterable[Any], value)
    return list(cast(dict[Any, Any], value).values()) if type(value) is dict else attributes(value).values()


def _is_key(value: Any) -> bool:
    """Whether it is a random key, typed or raw, traced or not."""
    if not (is_tracer(value) or is_a(value, jax.Array)):
        return False
    dtype, shape = str(value.aval.dtype), value.aval.shape
    return dtype.startswith("key<") or (dtype == "uint32" and shape[-1:] in ((2,), (4,)))
