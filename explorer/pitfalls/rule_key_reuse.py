"""Random keys that are used twice, or made inside the function, and so give the same numbers again.

Two values are the same key if the same operations on the same values compute them, as `keys[0]` in two places. A raw
key and the typed key made from it are one key. `fold_in` makes a new key, and doesn't use up its input.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, takewhile
from types import MethodType, ModuleType
from typing import Any

import jax
import numpy as np

from explorer._jax.traces import called_through
from explorer.capture.safe_reading import attributes, class_name, is_a, is_exactly, is_plain, is_tracer, kind_of
from explorer.model.findings import Finding
from explorer.model.graph import Frame
from explorer.model.stage import is_library_file
from explorer.pitfalls.equations import Body, Equation, Program, is_literal, liveness
from explorer.pitfalls.evidence import Evidence
from explorer.pitfalls.function_source import FunctionSource, expression_at, frame_location, jitted_calls, span_of
from explorer.pitfalls.rule import rule
from explorer.pitfalls.source_loops import loops_of
from explorer.pitfalls.state import exact_items

_USES = ("random_bits", "random_split", "random_gamma")
_SAME = ("random_wrap", "random_unwrap", "copy", "copy_p")
# Operations with equal results for equal inputs: enough to follow a key through indices and arithmetic.
_PURE = (
    *("slice", "squeeze", "reshape", "broadcast_in_dim", "dynamic_slice", "gather", "transpose", "rev", "concatenate"),
    *("random_fold_in", "random_seed", "lt", "add", "sub", "mul", "select_n", "convert_element_type", "unstack"),
)
_LOOPS = ("scan", "while")
_SMALL = 256  # bytes: a key has 8 or 16, some keys a few more


@dataclass(frozen=True)
class Value:
    number: int  # equal for equal values
    bodies: frozenset[Body] = frozenset()  # where what it is made of comes from
    seeds: frozenset[Any] = frozenset()  # where it starts, if nothing of it is an argument of the function; else empty
    is_constant: bool = True


class _Values:
    """Value numbering of a program's variables: equal values have equal numbers."""

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
        """Return the `Value` of a jaxpr's constant or input: its number, and where it comes from."""
        if atom in body.consts:
            # By its numbers: JAX makes a constant of each of two equal arrays.
            number = self.number("constant", _bytes(body.consts[atom]), str(atom.aval))
            return Value(number, frozenset([body]), frozenset([atom]))
        return Value(self.number("input", id(body), id(atom)), frozenset([body]), is_constant=False)

    def number(self, *what: Hashable) -> int:
        return self.numbers.setdefault(what, len(self.numbers))


def _bytes(value: Any) -> Hashable:
    """Return the bytes of a small array, but the address of a larger one, which may be on a device."""
    data = jax.random.key_data(value) if is_a(value, jax.Array) and str(value.dtype).startswith("key<") else value
    return np.asarray(data).tobytes() if getattr(data, "nbytes", 0) <= _SMALL else id(value)


@rule("key-reuse", "EX018", "warning", "random-numbers.html", passive=True, drivers=True)
def key_reuse(evidence: Evidence) -> Iterator[Finding]:
    """A random key that is used twice gives the same numbers twice."""
    if evidence.is_driver:
        yield from _in_driver(evidence)
    program = evidence.program
    if program.by_op.keys().isdisjoint(_USES):
        return
    values = _Values(program)
    # Uses whose results are dead don't count as a second use.
    dead = set(map(id, liveness(program)[1]))
    used = [
        (use, values.of(use.body, use.inputs[0]))
        for use in program.of(*_USES)
        if _is_forward(use) and not any(id(one) in dead for one in (use, *use.callers()))
    ]
    yield from _constant(evidence, program, used)
    yield from _twice(evidence, program, used)
    yield from _shared(evidence, program, used)


def _in_driver(evidence: Evidence) -> Iterator[Finding]:
    """Yield findings for keys that a driver, an uncompiled training loop, passes to a jitted function in each turn."""
    for function in evidence.functions:
        for call in jitted_calls(function):
            loop = next((outer for outer in function.around(call) if isinstance(outer, _TURNS)), None)
            keys = [one for one in call.args if isinstance(one, ast.Name) and _is_key(function.resolve(one))]
            line: int = getattr(loop, "lineno", 0)
            for key in keys if line else ():
                yield key_reuse.finding(
                    f"`{key.id}` is passed in each turn of the loop in line {line}: each turn draws the same numbers",
                    at=(function, call),
                    evidence=f"nothing in {evidence.name} makes another key of it",
                    fix=f"{key.id}, subkey = jax.random.split({key.id}) in each turn, and pass subkey; or "
                    f"jax.random.fold_in({key.id}, i)",
                )


_TURNS = (ast.For, ast.While, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


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
        # Two places that draw with one key are two draws, even if an object keeps the key.
        is_one_place = earlier is None or program.stack(earlier)[:1] == program.stack(use)[:1]
        holder = key_holder(evidence, _frames_inside(program, use, earlier or loop)) if is_one_place else ""
        reported.add(frame)
        yield _finding_of_use(evidence, *text, holder, frame)


def _used_earlier(use: Equation, earlier: Equation, before: Frame | None, frame: Frame) -> tuple[str, str, str]:
    line = f"line {before.line}" if before is not None and before.file == frame.file else "another place"
    what = f"on {line} already" if before != frame else "again each time this line runs"
    seen = f"{_use(earlier)} on {line} and {_use(use)} here, with one and the same key"
    return what, seen, "key, subkey = jax.random.split(key) before each use, and use the subkey once"


def _used_in_loop(use: Equation, loop: Equation | None) -> tuple[str, str, str]:
    seen = f"{_use(use)} in the body of {loop.op if loop else 'a loop'}, with a key that is the same in each turn"
    fix = "jax.random.fold_in(key, i) in the loop, or one key per turn: jax.random.split(key, n)"
    return "in each turn of the loop", seen, fix


def _finding_of_use(evidence: Evidence, what: str, seen: str, fix: str, holder: str, frame: Frame) -> Finding:
    kept = f"; {holder} stores the key, so each call of it draws the same numbers: right for one fixed random function"
    return key_reuse.finding(
        f"{evidence.name} uses a random key that it used {what}: the numbers are the same",
        evidence=seen + (kept if holder else ""),
        fix=fix,
        severity="note" if holder else None,
        **frame_location(frame),
    )


def _places(program: Program, earlier: Equation, use: Equation, frame: Frame) -> tuple[Frame | None, Frame]:
    """Return the frames of an earlier use and of `use`; if both are on one line, those where their calls part."""
    before = program.called_from(earlier)
    if before == frame:
        calls = zip(reversed(_users_stack(program, earlier)), reversed(_users_stack(program, use)), strict=False)
        return next(((one, other) for one, other in calls if one != other), (before, frame))
    return before, frame


def _frames_inside(program: Program, use: Equation, other: Equation | None) -> tuple[Frame, ...]:
    """Return the user's frames of a use that another equation doesn't share, from innermost outwards."""
    stack = _users_stack(program, use)
    outer = _users_stack(program, other) if other is not None else ()
    pairs = zip(reversed(stack), reversed(outer), strict=False)
    return stack[: len(stack) - sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))]


def _users_stack(program: Program, equation: Equation) -> tuple[Frame, ...]:
    return tuple(frame for frame in program.stack(equation) if not is_library_file(frame.file))


def _loop_around(program: Program, use: Equation, value: Value) -> Equation | None:
    """Return the loop that repeats a use with a key from outside; None without one, or for a library's own loop."""
    loop = next((body.caller for body in use.body.outwards() if _repeats_key(body, value)), None)
    if loop is not None and program.frame(use) is None:
        # JAX cuts some stacks at the loop's body: then no user frame in the body is known.
        return loop if _users_stack(program, use) not in ((), _users_stack(program, loop)) else None
    return loop


def _repeats_key(loop: Body, value: Value) -> bool:
    """Return True for the body of a loop with several turns whose key comes from outside."""
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
    node = expression_at(frame)
    given = node.args if isinstance(node, ast.Call) else []
    computed = any(isinstance(part, ast.Call) for node in given for part in ast.walk(node))
    return "its key is made once, while it is traced" if computed else "its key is made from a constant"


def _shared(evidence: Evidence, program: Program, uses: list[tuple[Equation, Value]]) -> Iterator[Finding]:
    """Yield findings for draws under vmap with one key for all elements."""
    reported: set[Frame] = set()
    for use, value in uses:
        frame = program.called_from(use)
        if use.op == "random_split" or frame is None or frame in reported or not _is_for_all(use, value):
            continue
        reported.add(frame)
        holder = key_holder(evidence, _users_stack(program, use)) or mapped_object(evidence, frame)
        seen = "the key isn't mapped over, so the draw runs once and all elements share its numbers"
        yield key_reuse.finding(
            f"{evidence.name} draws in jax.vmap with one key for all: each mapped element gets the same numbers",
            evidence=seen + (f"; right if {holder} stores the key and is one fixed random function" if holder else ""),
            fix="give each element a key of its own: jax.vmap(f)(xs, jax.random.split(key, len(xs))), with the key as "
            "an argument that is mapped over",
            severity="note" if holder else None,
            **frame_location(frame),
        )


def _is_for_all(use: Equation, value: Value) -> bool:
    """Return True for a draw under vmap whose key is neither mapped over nor a constant."""
    if "vmap(" not in use.transform or use.inputs[0].aval.shape or value.is_constant:
        return False
    outermost = [use, *use.callers()][-1]
    # jax.jacfwd maps over directions, for which the numbers have to be the same.
    return not called_through(outermost.raw.source_info.traceback, "jacfun", "hessian")


def _use(equation: Equation) -> str:
    return "a split" if equation.op == "random_split" else "a draw"


def _is_forward(equation: Equation) -> bool:
    """Return True unless a derivative recomputes the use with the same key on purpose."""
    recomputed = any(caller.params.get("differentiated") for caller in equation.callers())
    return "transpose" not in equation.transform and not recomputed


def _again(program: Program, one: Equation, other: Equation) -> bool:
    """Return True if both uses run in one call, and the user's code requests each."""
    branches = {id(body.caller): body for body in one.body.outwards() if body.caller and body.caller.op == "cond"}
    if any(branches.get(id(body.caller), body) is not body for body in other.body.outwards()):
        return False
    if program.frame(one) is None or program.frame(other) is None:  # a library uses the key it was given
        return _users_stack(program, one) != _users_stack(program, other) or _are_turns(program, one, other)
    return program.owner(one) is not program.owner(other)


def _are_turns(program: Program, one: Equation, other: Equation) -> bool:
    """Return True if a library's line made both in two turns of the user's loop, not of its own."""
    stack = program.stack(one)
    if stack != program.stack(other):
        return False
    inner = list(takewhile(lambda frame: is_library_file(frame.file), stack))
    users = [frame for frame in stack[len(inner) :] if not is_library_file(frame.file)]
    return any(map(_is_in_loop, users)) and not any(map(_is_in_loop, inner))


def _is_in_loop(frame: Frame) -> bool:
    return loops_of(frame.file).around(span_of(frame)) is not None


_MAX_DEPTH = 4  # equinox keeps a bound method's object two attributes below it
_MAX_ITEMS = 64  # attributes or items of one container


def key_holder(evidence: Evidence, frames: Sequence[Frame]) -> str:
    """Return the class name of an object that keeps a key and whose method one of some frames calls, or "".

    Args:
        frames: Frames of one stack, innermost first. The object of the outermost method doesn't count, and nothing
            counts if that frame passes a key.
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
    """Return `path` if a frame calls a function made of its attribute, `jax.vmap(path.at)(times)`, else "".

    "" also if the value of `path` is known. It is unknown for a local variable of a function that has returned.
    """
    source, node = _call_at(evidence, frame)
    match node:
        case ast.Call(func=ast.Call(args=[ast.Attribute(value=ast.Name() as owner), *_])) if source is not None:
            return owner.id if source.value(owner) is ... else ""
        case _:
            return ""


def _call_at(evidence: Evidence, frame: Frame) -> tuple[FunctionSource | None, ast.Call | None]:
    around = (
        function
        for function in evidence.functions
        if function.file == frame.file and function.node.lineno <= frame.line <= (function.node.end_lineno or 0)
    )
    source = max(around, key=lambda function: function.node.lineno, default=None)
    return source, source.call_at(span_of(frame)) if source is not None else None


def _hands_key_over(evidence: Evidence, source: FunctionSource, node: ast.Call) -> bool:
    calls = [call for call, _, other in evidence.calls if other is node]
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
    callee = source.resolve(node.func)
    if callee is not ... and not is_exactly(callee, MethodType):
        return [callee]
    recorded = [call.receiver for call, _, other in evidence.calls if other is node]
    # 3.11 doesn't record the object of a method behind a descriptor, as in equinox.
    return [*recorded, source.resolve(getattr(node.func, "value", node.func))]


def _holds_key(value: Any, depth: int = 0) -> bool:
    if is_tracer(value) or is_a(value, jax.Array):
        return _is_key(value)
    if value is ... or is_plain(value) or is_a(value, ModuleType) or depth > _MAX_DEPTH:
        return False
    items = exact_items(value)
    inner = attributes(value).values() if items is None else items
    return any(_holds_key(item, depth + 1) for item in list(islice(inner, _MAX_ITEMS)))


def _is_key(value: Any) -> bool:
    if not (is_tracer(value) or is_a(value, jax.Array)):
        return False
    dtype, shape = str(value.aval.dtype), value.aval.shape
    return dtype.startswith("key<") or (dtype == "uint32" and shape[-1:] in ((2,), (4,)))
