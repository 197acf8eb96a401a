"""A jaxpr → text and Graph.

The text is written here, one equation a line, because JAX's own printing has no map from lines to equations. Its
syntax is JAX's; every variable of the capture, inner jaxprs included, has a name of its own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import count
from typing import Any

import jax

from explorer._jax import inner_jaxprs, user_stack
from explorer.capture.readers.attribute_values import shorten_value
from explorer.capture.readers.graph_builder import GraphBuilder
from explorer.capture.readers.user_frames import users_part
from explorer.model.attributes import Attributes, tabulate
from explorer.model.graph import Frame, Graph, Group

__all__ = ["read_jaxpr", "short_type"]

_LONGEST_PARAMETER = 60
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")


def read_jaxpr(jaxpr: Any) -> tuple[str, Graph]:
    """Write a jaxpr as text and read it as a graph.

    Args:
        jaxpr: What `jax.stages.Traced.jaxpr` gives.

    Returns:
        The text, and one node per argument, constant and equation. An equation's inner jaxprs (jit, scan, while,
        cond, custom derivatives, shard_map) are groups that it calls. Its attributes are its parameters, and what no
        edge says:

        - `literals`: operands that are literals, by position: `1=2.0:f32[]`.
        - `operand_results`: which result of its equation each operand is, if not all are first ones: `0,1`.
        - `returned`: as which results the jaxpr around it gives it back: `0`; with several results of its own,
          `0=1` is its second one.
    """
    reader = _Reader()
    reader.read(getattr(jaxpr, "jaxpr", jaxpr), "main", group=reader.builder.add_group(Group("main", "entry")), depth=0)
    rows = [tuple(attributes.items()) for attributes in reader.attributes]
    graph = reader.builder.build(Attributes(lambda: tabulate(range(len(rows)), rows)))
    return "\n".join(reader.lines) + "\n", graph


class _Reader:
    def __init__(self) -> None:
        self.builder = GraphBuilder()
        self.lines: list[str] = []
        self.attributes: list[dict[str, str]] = []  # of each node
        self.fresh = count()
        self.frame_of_traceback: dict[tuple[int, int], int] = {}
        self.stack_of_traceback: dict[int, tuple[Frame, ...]] = {}
        self.tracebacks: list[Any] = []  # kept alive: the table above is keyed by their identity

    def read(self, jaxpr: Any, title: str, *, group: int, depth: int, scope: str = "", caller: int = -1) -> None:
        """Read one jaxpr into `group`; its variables are known only inside it. `caller` is its caller's frame."""
        indent = "  " * depth
        node_of: dict[Any, tuple[int, int]] = {}  # by variable: the node that makes it, and as which of its results
        name_of: dict[Any, str] = {}
        names: tuple[str, ...] = tuple(getattr(jaxpr.debug_info, "arg_names", None) or ()) if depth == 0 else ()
        labels: list[str] = []
        for i, variable in enumerate([*jaxpr.constvars, *jaxpr.invars]):
            is_constant = i < len(jaxpr.constvars)
            name = self.name_variable()
            op = "constant" if is_constant else "parameter"
            path = "" if is_constant else _nth(names, i - len(jaxpr.constvars))
            node = self.builder.add(name, op, _type(variable.aval), scope=path, group=group, line=len(self.lines))
            self.attributes.append({})
            node_of[variable] = node, 0
            self.builder.connect(())
            name_of[variable] = name
            labels.append(f"{name}:{_type(variable.aval)}" + (f" ({path})" if path else ""))
        self.lines.append(f"{indent}{title} {{ lambda {' '.join(labels)} . let")
        equations: list[Any] = jaxpr.eqns
        inner = [inner_jaxprs(equation.params) for equation in equations]
        self.read_stacks(equations)
        for equation, jaxprs in zip(equations, inner, strict=True):
            frame = self.read_frames(equation.source_info.traceback, caller)
            self.read_equation(equation, jaxprs, node_of, name_of, frame, group=group, depth=depth + 1, scope=scope)
        for position, variable in enumerate(jaxpr.outvars):
            if not hasattr(variable, "val") and variable in node_of:
                node, result = node_of[variable]
                own = self.attributes[node]
                as_result = f"{position}={result}" if result else str(position)
                own["returned"] = f"{own['returned']},{as_result}" if "returned" in own else as_result
        outputs = ", ".join(_written(v, name_of) for v in jaxpr.outvars)
        self.lines.append(f"{indent}in ({outputs}) }}")

    def read_equation(
        self,
        equation: Any,
        inner: list[tuple[str, Any]],
        node_of: dict[Any, tuple[int, int]],
        name_of: dict[Any, str],
        frame: int,
        *,
        group: int,
        depth: int,
        scope: str,
    ) -> None:
        primitive = equation.primitive.name
        names = [self.name_variable() for _ in equation.outvars] or [self.name_variable()]
        types = [_type(variable.aval) for variable in equation.outvars]
        own = str(equation.source_info.name_stack)
        path = "/".join(part for part in (scope, own) if part)
        node = self.builder.add(
            names[0],
            primitive,
            types[0] if len(types) == 1 else f"({', '.join(types)})",
            scope="/".join(part for part in (path, primitive) if part),
            group=group,
            frame=frame,
            line=len(self.lines),
        )
        # A literal has a value and no maker: it is written into the line, and is no edge.
        operands = [v for v in equation.invars if not hasattr(v, "val")]
        makers = [node_of[v] for v in operands if v in node_of]
        self.builder.connect(node for node, _ in makers)
        written = " ".join(_written(v, name_of) for v in equation.invars)
        left = " ".join(f"{name}:{type_}" for name, type_ in zip(names, types, strict=False))
        skipped = {key.split("[")[0] for key, _ in inner}
        values = {
            key: " ".join(str(value).split())
            for key, value in equation.params.items()
            if key not in skipped and value is not None
        }
        self.attributes.append(_attributes(values, equation.invars, makers))
        params = " ".join(f"{key}={_short(value)}" for key, value in values.items())
        self.lines.append(
            f"{'  ' * depth}{left or '_'} = {primitive}" + (f"[{params}]" if params else "") + f" {written}"
        )
        for i, (variable, name) in enumerate(zip(equation.outvars, names, strict=False)):
            node_of[variable] = node, i
            name_of[variable] = name
        label = equation.params.get("name")
        for key, jaxpr in inner:
            title = f"{key}={label}" if isinstance(label, str) else key
            inner_group = self.builder.add_group(Group(title, _kind(primitive, key), parent=group, caller=node))
            self.read(jaxpr, title, group=inner_group, depth=depth + 1, scope=path, caller=frame)

    def read_stacks(self, equations: Sequence[Any]) -> None:
        """Read the stacks of all tracebacks that are not known yet; few are, as a line makes many equations."""
        for equation in equations:
            traceback = equation.source_info.traceback
            if traceback is not None and id(traceback) not in self.stack_of_traceback:
                self.stack_of_traceback[id(traceback)] = user_stack(traceback)
                self.tracebacks.append(traceback)

    def read_frames(self, traceback: Any, caller: int) -> int:
        """The index of a traceback's innermost user frame.

        JAX traces a loop's body apart and cuts its tracebacks there: the rest of the stack is the caller's.
        """
        if traceback is None:
            return caller
        known = self.frame_of_traceback.get((id(traceback), caller))
        if known is None:
            stack, outer = users_part(self.stack_of_traceback[id(traceback)]), self.outermost(caller)
            is_cut = not stack or outer is None or (stack[-1].file, stack[-1].function) != (outer.file, outer.function)
            known = caller if is_cut else -1
            for frame in reversed(stack):
                known = self.builder.add_frame(replace(frame, parent=known))
            self.frame_of_traceback[id(traceback), caller] = known
        return known

    def outermost(self, frame: int) -> Frame | None:
        frames = self.builder.frames
        while frame >= 0 and frames[frame].parent >= 0:
            frame = frames[frame].parent
        return frames[frame] if frame >= 0 else None

    def name_variable(self) -> str:
        """a … z, aa … zz, as JAX counts."""
        number, name = next(self.fresh), ""
        while True:
            number, letter = divmod(number, 26)
            name = chr(97 + letter) + name
            if number == 0:
                return name
            number -= 1


def short_type(value: Any) -> str:
    """`f32[8,128]`: JAX's short form of what has a shape and dtype."""
    return _type(jax.typeof(value))


def _type(aval: Any) -> str:
    """`f32[8,128]`: JAX's own short form, where the aval has one."""
    short = getattr(aval, "str_short", None)
    return short(short_dtypes=True) if short else str(aval)


def _written(atom: Any, name_of: dict[Any, str]) -> str:
    """A variable by its name, a literal by its value and type."""
    return f"{atom.val}:{_type(atom.aval)}" if hasattr(atom, "val") else name_of.get(atom, "_")


def _nth(names: tuple[str, ...], index: int) -> str:
    return names[index] if 0 <= index < len(names) else ""


def _attributes(
    parameters: Mapping[str, str], operands: Sequence[Any], makers: Sequence[tuple[int, int]]
) -> dict[str, str]:
    """An equation's parameters, cut where they are long, and what its edges don't say."""
    # Where a function lies in memory is another place each time, and captures of one program are to be the same.
    attributes = {key: shorten_value(_ADDRESS.sub("", text)) for key, text in parameters.items()}
    literals = [f"{i}={_written(v, {})}" for i, v in enumerate(operands) if hasattr(v, "val")]
    if literals:
        attributes["literals"] = ", ".join(literals)
    if any(result for _, result in makers):
        attributes["operand_results"] = ",".join(str(result) for _, result in makers)
    return attributes


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST_PARAMETER else text[: _LONGEST_PARAMETER - 1] + "…"


def _kind(primitive: str, key: str) -> str:
    if primitive in ("scan", "while"):
        return "condition" if key.startswith("cond") else "body"
    return "branch" if primitive == "cond" else "call"
