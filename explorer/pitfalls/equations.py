"""Equations of a closed jaxpr and its inner jaxprs, with their place in the user's text.

An inner jaxpr is walked once for each call: facts about its arguments depend on the call. JAX caches the jaxprs of its
own functions with the lines of their first caller, so their equations get the place of their current caller.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import Any, cast

import jax

from explorer._jax.arguments import jaxpr_place
from explorer._jax.traces import Literal, inner_jaxprs, scan_inputs, user_stack
from explorer.capture.readers.graph_builder import is_runner
from explorer.model.declared import cached_property
from explorer.model.graph import Frame
from explorer.model.stage import is_library_file

_MAX_EQUATIONS = 400_000  # equations: one that is larger is looked at in part
_JAX = os.path.dirname(jax.__file__) + os.sep
_CALLS = (
    *("jit", "pjit", "closed_call", "core_call", "remat2", "remat", "checkpoint"),
    *("custom_jvp_call", "custom_vjp_call", "custom_vjp_call_jaxpr"),
)
_PLAIN = (str, int, float, bool, type(None))


class Equation:
    """Equation of a jaxpr, with plain attributes, since every rule reads them."""

    __slots__ = ("body", "inner", "inputs", "number", "op", "outputs", "params", "raw")

    def __init__(self, raw: Any, body: Body) -> None:
        self.raw = raw
        self.body = body
        self.inner: tuple[Body, ...] = ()
        self.number = 0  # its position in the program
        self.op: str = raw.primitive.name
        self.params: dict[str, Any] = raw.params
        self.inputs: Sequence[Any] = raw.invars
        self.outputs: Sequence[Any] = raw.outvars

    @property
    def is_call(self) -> bool:
        """True if the equation's one inner jaxpr takes its inputs and returns its outputs one to one."""
        return len(self.inner) == 1 and self.op in _CALLS and len(self.inner[0].raw.invars) == len(self.inputs)

    @property
    def transform(self) -> str:
        """Transforms and named scopes around the equation, outermost first: `transpose(jvp(block))`."""
        own, caller = str(self.raw.source_info.name_stack), self.body.caller
        return "/".join(path for path in (caller.transform if caller is not None else "", own) if path)

    def callers(self) -> Iterator[Equation]:
        """Yield the equations whose inner jaxprs contain this one, innermost first."""
        return (body.caller for body in self.body.outwards() if body.caller is not None)


class Body:
    """Jaxpr at one place in the program.

    Args:
        raw: JAX's open jaxpr.
        caller: Equation that it is a parameter of; None for the outermost.
        parameter: Name of that parameter: `jaxpr`, `branches[0]`.
        consts: Values of its constants.
    """

    def __init__(
        self, raw: Any, caller: Equation | None = None, parameter: str = "", consts: Sequence[Any] = ()
    ) -> None:
        self.raw = raw
        self.consts: dict[Any, Any] = dict(zip(raw.constvars, consts, strict=False))
        self.caller = caller
        self.parameter = parameter
        self.equations = [Equation(equation, self) for equation in raw.eqns]

    @cached_property
    def makers(self) -> dict[Any, Equation]:
        return {output: equation for equation in self.equations for output in equation.outputs}

    @cached_property
    def positions(self) -> dict[Any, int]:
        return {variable: i for i, variable in enumerate(self.raw.invars)}

    def outwards(self) -> Iterator[Body]:
        """Yield this body and the bodies around it, up to the outermost."""
        body: Body = self
        while body.caller is not None:
            yield body
            body = body.caller.body
        yield body

    @cached_property
    def is_of_jax(self) -> bool:
        return self.caller is not None and self.caller.op in ("jit", "pjit") and _JAX in jaxpr_place(self.raw)[0]

    @cached_property
    def jitted(self) -> Body | None:
        """Innermost jitted function that is this body or contains it; None without one."""
        if self.caller is None or self.caller.op in ("jit", "pjit"):
            return self if self.caller is not None else None
        return self.caller.body.jitted

    def is_in(self, frame: Frame) -> bool:
        """Return True if this body was traced from a frame's function, by name and file."""
        name, _, place = jaxpr_place(self.raw)[0].partition(" at ")
        return place.startswith(f"{frame.file}:") and frame.function.rpartition(".")[2] == name


class Program:
    """All equations of a closed jaxpr in program order, each before those inside it."""

    def __init__(self, closed: Any) -> None:
        self.main = Body(getattr(closed, "jaxpr", closed), consts=getattr(closed, "consts", ()))
        self.bodies = [self.main]
        self.equations: list[Equation] = []
        self._around: dict[Body, tuple[Body | None, tuple[Frame, ...]]] = {}
        self._stacks: dict[tuple[Any, int], tuple[Frame, ...]] = {}
        self._places: dict[int, tuple[bool, Frame | None]] = {}
        self._walk(self.main)
        self.by_op: dict[str, list[Equation]] = {}
        for number, equation in enumerate(self.equations):
            equation.number = number
            self.by_op.setdefault(equation.op, []).append(equation)

    def close(self) -> None:
        """Break the reference cycles between equations and bodies, which keep the constants alive."""
        for body in self.bodies:
            vars(body).clear()
        self.bodies.clear()
        self._around.clear()
        self.by_op.clear()
        self.equations.clear()

    def _walk(self, body: Body) -> None:
        equations = self.equations
        for equation in body.equations:
            equations.append(equation)
            params = equation.raw.params
            for value in params.values():  # cheaper than inner_jaxprs for plain parameters
                if type(value) not in _PLAIN:
                    break
            else:
                continue
            if len(equations) > _MAX_EQUATIONS:
                continue
            inner = inner_jaxprs(params)
            if inner:
                consts = [getattr(value, "consts", ()) for value in _closed(params)]
                equation.inner = tuple(
                    Body(jaxpr, equation, key, values) for (key, jaxpr), values in zip(inner, consts, strict=True)
                )
                for inner_body in equation.inner:
                    self.bodies.append(inner_body)
                    self._walk(inner_body)

    def of(self, *ops: str) -> list[Equation]:
        lists = [self.by_op[op] for op in set(ops) if op in self.by_op]
        return sorted((equation for each in lists for equation in each), key=lambda equation: equation.number)

    def frame(self, equation: Equation) -> Frame | None:
        """Return the equation's frame in the user's own text; None for library code."""
        is_own, frame = self._place(equation)
        return frame if is_own else None

    def called_from(self, equation: Equation) -> Frame | None:
        """Return the frame of the user's line that caused the equation, also through library calls, else None."""
        return self._place(equation)[1]

    def stack(self, equation: Equation) -> tuple[Frame, ...]:
        """Return the frames between the function and JAX, innermost first. Equal stacks are one object."""
        body = equation.body
        around = self._around.get(body)
        if around is None:
            around = self._around[body] = self._stack_around(body)
        jitted, outer = around
        if body.is_of_jax:
            return outer
        key = equation.raw.source_info.traceback, id(outer)  # equal for equal stacks; to hash it takes a while
        stack = self._stacks.get(key)
        if stack is None:
            stack = tuple(takewhile(lambda frame: not is_runner(frame.file), user_stack(key[0])))
            # Of a function that was traced before, JAX has the lines of who called it then.
            own = next((i for i in range(len(stack), 0, -1) if jitted and jitted.is_in(stack[i - 1])), 0)
            self._stacks[key] = stack = (*stack[:own], *outer) if own else stack
        return stack

    def _stack_around(self, body: Body) -> tuple[Body | None, tuple[Frame, ...]]:
        """Return the user's jitted function around a body, or None, and the stack of its call, or () without a call."""
        jitted = None if body.is_of_jax else body.jitted
        caller = body.caller if body.is_of_jax else jitted.caller if jitted is not None else None
        return jitted, self.stack(caller) if caller is not None else ()

    def _place(self, equation: Equation) -> tuple[bool, Frame | None]:
        """Return True if the innermost frame is the user's, and the user's innermost frame, or None."""
        stack = self.stack(equation)
        place = self._places.get(id(stack))
        if place is None:
            at = next((i for i, frame in enumerate(stack) if not is_library_file(frame.file)), -1)
            place = self._places[id(stack)] = at == 0, stack[at] if at >= 0 else None
        if place[1] is None:  # JAX cuts the stacks of loop bodies
            caller = _outside_of_jax(equation).body.caller
            return place if caller is None else self._place(caller)
        return place

    def owner(self, equation: Equation) -> Equation:
        """Return the outermost call around an equation at the same place, such as `jax.random.normal`, else itself."""
        frame = self.frame(equation)
        while (caller := equation.body.caller) is not None and caller.is_call and self.frame(caller) == frame:
            equation = caller
        return equation

    def origin(self, body: Body, atom: Any, inward: bool = False, own_rules: bool = True) -> tuple[Body, Any]:
        """Return the body and atom that a value comes from, followed through calls.

        With `inward` the search stays within the body. Without `own_rules` it stops at functions with custom
        derivatives.
        """
        start = body
        for _ in range(1_000):  # each turn goes one call inwards or outwards: deeper than any program that was seen
            if is_literal(atom):
                break
            maker = body.makers.get(atom)
            if maker is not None:
                if not maker.is_call or (maker.op.startswith("custom_") and not own_rules):
                    break
                inner = maker.inner[0]
                body, atom = inner, inner.raw.outvars[list(maker.outputs).index(atom)]
                continue
            operand = None if inward and body is start else self.passed(body, atom)
            if operand is None:
                break
            body, atom = operand
        return body, atom

    def passed(self, body: Body, variable: Any) -> tuple[Body, Any] | None:
        """Return (the caller's body, the atom that it passes) for an input that stays the same on every run of a body;
        None for others.
        """
        caller, i = body.caller, body.positions.get(variable)
        if caller is None or i is None:
            return None
        if caller.is_call:
            return caller.body, caller.inputs[i]
        if caller.op == "cond":
            return caller.body, caller.inputs[i + 1]
        at = self._loop_operand(caller, body, i) if caller.op in ("scan", "while") else None
        return None if at is None else (caller.body, caller.inputs[at])

    def _loop_operand(self, loop: Equation, body: Body, i: int) -> int | None:
        if loop.op == "scan":
            # Beyond the constants and the carry, an input is another slice in each turn.
            own, carried = scan_inputs(loop.params)
            return i if i < own or (i < own + carried and self._is_kept(body, i, i - own)) else None
        # The operands of `while` are the constants of its condition, those of its body, and what it carries.
        condition, inner = (loop.params[name] for name in ("cond_nconsts", "body_nconsts"))
        own, before = (inner, condition) if body.parameter.startswith("body") else (condition, 0)
        if i < own:
            return before + i
        return condition + inner + i - own if self._is_kept(body, i, i - own) else None

    def _is_kept(self, body: Body, i: int, output: int) -> bool:
        """Return True if a loop's body returns its input `i` unchanged as its carry."""
        outputs = body.raw.outvars
        return output < len(outputs) and self.origin(body, outputs[output], inward=True) == (body, body.raw.invars[i])

    def maker(self, body: Body, atom: Any) -> Equation | None:
        """Return the non-call equation that computes a value; None for arguments, constants and literals."""
        body, atom = self.origin(body, atom)
        return None if is_literal(atom) else body.makers.get(atom)

    def users(self, body: Body) -> Iterator[tuple[Equation, Frame]]:
        for equation in body.equations:
            frame = self.frame(equation)
            if frame is not None:
                yield equation, frame


def _outside_of_jax(equation: Equation) -> Equation:
    """Return the equation, or the call around it that is outside of JAX's own jitted functions."""
    while equation.body.is_of_jax and equation.body.caller is not None:
        equation = equation.body.caller
    return equation


def _closed(params: dict[str, Any]) -> Iterator[Any]:
    """Yield the closed jaxprs that `inner_jaxprs` opened, in its order."""
    for value in params.values():
        for item in cast(Sequence[Any], value) if isinstance(value, (tuple, list)) else (value,):
            inner = getattr(item, "jaxpr", item)
            if hasattr(inner, "eqns") and hasattr(inner, "invars"):
                yield item


def is_literal(atom: Any) -> bool:
    return hasattr(atom, "val")


def is_float(atom: Any) -> bool:
    return getattr(getattr(atom.aval, "dtype", None), "kind", "") in ("f", "V", "c")  # V: bfloat16 and its like


def liveness(program: Program) -> tuple[set[Any], list[Equation]]:
    """Return the variables that the results need, and the dead equations, last first.

    An equation is dead if it has no effects and nothing needs its results.
    """
    dead: list[Equation] = []
    return _mark(program.main, set(variables(program.main.raw.outvars)), dead), dead


def _mark(body: Body, used: set[Any], dead: list[Equation]) -> set[Any]:
    """Add the variables that used results of a body depend on to `used`, and return `used`.

    Equations that have no effects and no used results are added to `dead`.
    """
    # From the last: an equation is reached after all that could use it.
    for equation in reversed(body.equations):
        if equation.raw.effects or not used.isdisjoint(equation.outputs):
            used.update(variables(_needed(equation, used, dead)))
        else:
            dead.append(equation)
    return used


def _needed(equation: Equation, used: set[Any], dead: list[Equation]) -> Sequence[Any]:
    """Return the operands that an equation's used results depend on, for a call through its jaxpr."""
    needed = equation.inputs
    for inner in equation.inner:
        if inner.is_of_jax:  # nothing of the user's is in it
            continue
        results = inner.raw.outvars
        if equation.is_call and len(results) == len(equation.outputs):
            results = [result for result, out in zip(results, equation.outputs, strict=True) if out in used]
        inside = _mark(inner, set(variables(results)), dead)
        if equation.is_call:
            needed = [o for o, v in zip(equation.inputs, inner.raw.invars, strict=True) if v in inside]
    return needed


def variables(atoms: Sequence[Any]) -> list[Any]:
    return [atom for atom in atoms if not isinstance(atom, Literal)]  # which have no hash
