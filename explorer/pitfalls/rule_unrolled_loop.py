"""Python loops in a traced function: each turn is traced and compiled, where lax.scan would have one body."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Any, NamedTuple

from explorer.capture.sources import Span, parse, read_source
from explorer.model.findings import Finding
from explorer.model.graph import Frame
from explorer.model.stage import is_library_file
from explorer.pitfalls.equations import Equation, Program
from explorer.pitfalls.evidence import Evidence
from explorer.pitfalls.function_source import frame_location, last_name, span_of
from explorer.pitfalls.rule import rule

# Turns and equations. A model of a few layers is usually written as a loop, and compiles quickly.
_COSTLY = (20, 50)
_NOTEWORTHY = (4, 60)


@rule("unrolled-loop", "EX012", "warning", "control-flow.html", passive=True)
def unrolled_loop(evidence: Evidence) -> Iterator[Finding]:
    """A Python loop is unrolled: each turn makes the program larger, and slower to trace and compile."""
    program = evidence.program
    if len(program.equations) < _COSTLY[1]:
        return
    total = len(program.equations)
    by_loop = _loops(program)
    for loop, seen in by_loop.items():
        around = by_loop.get(seen.around) if seen.around is not None else None
        turns = _turns(seen.repeats) // (_turns(around.repeats) if around is not None else 1)
        is_costly = turns >= _COSTLY[0] and seen.equations >= _COSTLY[1]
        if not is_costly and not (turns >= _NOTEWORTHY[0] and seen.equations >= _NOTEWORTHY[1]):
            continue
        yield unrolled_loop.finding(
            f"this loop runs in Python, while {evidence.name} is traced: its body is in the program {turns} times",
            evidence=f"{seen.equations:,} of the program's {total:,} equations, {seen.equations / total:.0%}, come of "
            f"it: about {seen.equations // turns} for each turn",
            fix=_fix(loop),
            severity="warning" if is_costly else "note",
            **frame_location(Frame(seen.file, "", *loop.header)),
        )


@dataclass
class _Seen:
    file: str  # where it is
    around: Loop | None  # the loop that calls the function that it is in
    equations: int = 0  # all that come of it
    # how often each operation of its own body is there: those with the same stack, primitive and shapes
    repeats: Counter[Any] = field(default_factory=Counter[Any])


def _loops(program: Program) -> dict[Loop, _Seen]:
    by_loop: dict[Loop, _Seen] = {}

    @cache
    def loops_in(file: str) -> FileLoops:
        return FileLoops() if is_library_file(file) else loops_of(file)

    @cache  # most stacks share frames
    def loop_of(frame: Frame) -> Loop | None:
        return loops_in(frame.file).around(span_of(frame))

    of_stack: dict[int, list[_Seen]] = {}
    for equation in program.equations:
        stack = program.stack(equation)
        if id(stack) not in of_stack:
            loops = [(loop, frame.file) for frame in stack if (loop := loop_of(frame)) is not None]
            outer = [loop for loop, _ in loops[1:]] + [None]
            of_stack[id(stack)] = [
                by_loop.setdefault(loop, _Seen(file, around))
                for (loop, file), around in zip(loops, outer, strict=False)
            ]
        seen = of_stack[id(stack)]
        for loop in seen:
            loop.equations += 1
        if seen:
            seen[0].repeats[_operation(equation, stack)] += 1
    return by_loop


def _operation(equation: Equation, stack: Sequence[Frame]) -> tuple[Any, ...]:
    """Return a key that an operation has in every turn of a Python loop: stack, primitive, first shapes."""
    inputs, outputs = equation.inputs, equation.outputs  # a list of both took four times as long
    first = getattr(inputs[0].aval, "shape", None) if inputs else None
    return id(stack), equation.op, first, getattr(outputs[0].aval, "shape", None) if outputs else None


def _turns(repeats: Counter[Any]) -> int:
    """Return how many times a body is in the program, by most of its operations; 1 if most occur once."""
    if not repeats:  # all of it is in other loops
        return 1
    several = [count for count in repeats.values() if count > 1]
    if sum(several) * 2 < sum(repeats.values()):
        return 1
    by_count = Counter(several)
    most = max(by_count.values())
    return min(count for count, n in by_count.items() if n == most)


def _fix(loop: Loop) -> str:
    if loop.is_comprehension:
        return f"jax.vmap(lambda {loop.target}: …)(…) computes all of them at once, from one array of {loop.source}"
    names = ", ".join(loop.carried) or "state"
    state = f"({names})" if "," in names else names
    if not loop.source:
        return f"{names} = jax.lax.while_loop(condition, body, {state})"
    if not loop.collected and 0 < len(loop.range_arguments) < 3:
        low, high = ("0", *loop.range_arguments)[-2:]
        turn = _body(f"{loop.target}, {{0}}", names)
        call = f"{names} = jax.lax.fori_loop({low}, {high}, body, {state})"
        return f"{turn}\n    …\n    return {names}\n{call}"
    return _scan(loop, names, state)


def _scan(loop: Loop, names: str, state: str) -> str:
    made, bounds, is_several = ", ".join(loop.collected), ", ".join(loop.range_arguments), "," in loop.target
    stacked = f"stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *{loop.source})  # along a new first axis\n"
    turn = _body("{0}, each" if is_several else f"{{0}}, {loop.target}", names)
    turn += f"\n    {loop.target} = each" if is_several else ""
    returned, result = (f"{state}, what a turn adds", made) if made else (f"{state}, None", "_")
    each = f"jnp.arange({bounds})" if bounds else "stacked"
    call = f"{state}, {f'({made})' if ',' in made else result} = jax.lax.scan(body, {state}, {each})"
    return f"{'' if bounds else stacked}{turn}\n    …\n    return {returned}\n{call}"


def _body(parameters: str, names: str) -> str:
    """Return the head of a turn's function, which takes the carry as one parameter."""
    if "," not in names:
        return f"def body({parameters.format(names)}):"
    return f"def body({parameters.format('state')}):\n    {names} = state"


_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


@dataclass(frozen=True, eq=False)
class Loop:
    node: ast.AST  # `for`, `while`, or a comprehension
    body: tuple[Span, ...]  # what runs in each turn
    header: Span  # what a person points at
    function: Span | None  # span of the enclosing `def`

    @property
    def is_comprehension(self) -> bool:
        return isinstance(self.node, _COMPREHENSIONS)

    @property
    def _head(self) -> Any:
        """Node with the loop's `target` and `iter`; the `while` itself, which has neither."""
        return self.node.generators[0] if isinstance(self.node, _COMPREHENSIONS) else self.node

    @property
    def source(self) -> str:
        return ast.unparse(self._head.iter) if hasattr(self._head, "iter") else ""

    @property
    def target(self) -> str:
        return ast.unparse(self._head.target) if hasattr(self._head, "target") else ""

    @property
    def range_arguments(self) -> list[str]:
        """Arguments of the loop's `range()`; empty for other loops."""
        match getattr(self.node, "iter", None):
            case ast.Call(func=ast.Name(id="range"), args=args, keywords=[]):
                return list(map(ast.unparse, args))
            case _:
                return []

    @property
    def collected(self) -> list[str]:
        """Names of the lists that each turn appends to."""
        names: dict[str, None] = {}
        for part in self._parts:
            match part:
                case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="append")):
                    names[name] = None
                case _:
                    continue
        return list(names)

    @property
    def carried(self) -> list[str]:
        """Names that a turn reads before it assigns them."""
        named = [part for part in self._parts if isinstance(part, ast.Name)]
        reads_first: dict[str, bool] = {}
        # As a statement runs: what it reads before what it stores.
        for name in sorted(named, key=lambda name: (name.lineno, isinstance(name.ctx, ast.Store))):
            reads_first.setdefault(name.id, isinstance(name.ctx, ast.Load))
        # `x += 1` reads x, though the syntax tree has the store only.
        reads_first |= {last_name(part.target): True for part in self._parts if isinstance(part, ast.AugAssign)}
        stored = dict.fromkeys(name.id for name in named if isinstance(name.ctx, ast.Store))
        carried = [name for name in stored if reads_first[name]]
        return list(filter(lambda name, own=self._comprehended: name not in own, carried))

    @property
    def _comprehended(self) -> set[str]:
        """Variables of comprehensions in the body, which are their own."""
        targets = [part.target for part in self._parts if isinstance(part, ast.comprehension)]
        return {part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)}

    @property
    def _parts(self) -> list[ast.AST]:
        body = self.node.body if isinstance(self.node, (ast.For, ast.While)) else []
        return [part for statement in body for part in ast.walk(statement)]


class FileLoops(NamedTuple):
    loops: Sequence[Loop] = ()
    functions: Sequence[Span] = ()

    def around(self, span: Span) -> Loop | None:
        """Return the innermost loop of the same function whose turns run a span; None without one."""
        if not self.loops:
            return None
        function = min((function for function in self.functions if span in function), key=_size, default=None)
        around = (loop for loop in self.loops if loop.function == function and any(span in part for part in loop.body))
        return min(around, key=lambda loop: _size(loop.body[0]), default=None)


def loops_of(file: str) -> FileLoops:
    source = read_source(file)
    return _loops_in(source.text) if source is not None else FileLoops()


def _size(span: Span) -> tuple[int, int]:
    return span.end_line - span.line, span.end_column - span.column


@lru_cache(maxsize=32)
def _loops_in(text: str) -> FileLoops:
    tree = parse(text)
    if tree is None:
        return FileLoops()
    functions: list[Span] = []
    return FileLoops(tuple(_inside(tree, None, functions)), functions)


def _inside(node: ast.AST, function: Span | None, functions: list[Span]) -> Iterator[Loop]:
    if isinstance(node, _FUNCTIONS):
        function = Span.of(node)
        functions.append(function)
    elif isinstance(node, (ast.For, ast.While)):
        head = node.iter if isinstance(node, ast.For) else node.test
        # The condition of a `while` runs in each turn, what a `for` goes through does not.
        whole = Span(*Span.of(node.body[0])[:2], *Span.of(node.body[-1])[2:])
        body = (whole, *((Span.of(head),) if isinstance(node, ast.While) else ()))
        yield Loop(node, body, Span(node.lineno, node.col_offset, *Span.of(head)[2:]), function)
    elif isinstance(node, _COMPREHENSIONS):
        parts = (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,)
        yield Loop(node, tuple(map(Span.of, parts)), Span.of(node), function)
    for part in ast.iter_child_nodes(node):
        yield from _inside(part, function, functions)
