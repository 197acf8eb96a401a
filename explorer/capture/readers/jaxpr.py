"""Reader of a jaxpr into text and Graph.

JAX's own printing has no map from lines to equations, so the text is written here, one equation a line. Its syntax is
JAX's; every variable of the capture, inner jaxprs included, has a name of its own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, count, repeat
from typing import Any

import jax

from explorer._jax.traces import read_equations
from explorer.capture.readers.graph_builder import GraphBuilder, shorten_value, users_part
from explorer.model.attributes import Attributes, tabulate
from explorer.model.graph import Frame, Graph, Group

_MAX_PARAMETER = 60
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")


def read_jaxpr(jaxpr: Any, notes: Mapping[Any, Mapping[str, str]] | None = None) -> tuple[str, Graph]:
    """Write a `jax.stages.Traced.jaxpr` as text and read it as a graph.

    `notes` are further attributes by variable; those of a second result get `_1` after their key. The graph has one
    node per argument, constant and equation. An equation's inner jaxprs (jit, scan, while, cond, custom derivatives,
    shard_map) are groups that it calls. Its attributes are its parameters, and:

    - `literals`: operands that are literals, by position: `1=2.0:f32[]`.
    - `operand_results`: the result number of each operand, if not all are first results: `0,1`.
    - `returned`: the outputs of the surrounding jaxpr that it is: `0`; of its second result `0=1`.
    """
    jaxpr = getattr(jaxpr, "jaxpr", jaxpr)
    reader = _Reader(notes or {}, *read_equations(jaxpr))
    main = _Body(reader.builder.add_group(Group("main", "entry")))
    reader.read(jaxpr, "main", main)
    rows = [tuple(attributes.items()) for attributes in reader.attributes]
    graph = reader.builder.build(Attributes(partial(tabulate, range(len(rows)), rows)))
    return "\n".join(reader.lines) + "\n", graph


@dataclass
class _Body:
    """The jaxpr whose equations are being read, and its variables, visible only inside it: their nodes, results and
    names.

    `scope` and `caller` are the name scopes and the frame of the equation that calls it.
    """

    group: int
    depth: int = 0
    scope: str = ""
    caller: int = -1
    node_of: dict[Any, tuple[int, int]] = field(default_factory=dict[Any, tuple[int, int]])
    name_of: dict[Any, str] = field(default_factory=dict[Any, str])

    def bind(self, node: int, variables: Sequence[Any], names: Sequence[str]) -> None:
        for result, (variable, name) in enumerate(zip(variables, names, strict=True)):
            self.node_of[variable] = node, result
            self.name_of[variable] = name

    def makers(self, atoms: Sequence[Any]) -> list[tuple[int, int]]:
        """Return (node, number of the result) of each variable that a node here makes, without literals."""
        return [self.node_of[atom] for atom in atoms if not hasattr(atom, "val") and atom in self.node_of]

    def written(self, atoms: Sequence[Any]) -> list[str]:
        return [_written(atom, self.name_of) for atom in atoms]


class _Reader:
    def __init__(
        self,
        notes: Mapping[Any, Mapping[str, str]],
        inner: Mapping[int, Sequence[tuple[str, Any]]],
        stacks: Mapping[Any, tuple[Frame, ...]],
    ) -> None:
        self.notes, self.inner, self.stacks = notes, inner, stacks
        self.builder = GraphBuilder()
        self.lines: list[str] = []
        self.attributes: list[dict[str, str]] = []  # of each node
        self.fresh = count()
        self.frame_of_traceback: dict[tuple[Any, int], int] = {}

    def read(self, jaxpr: Any, title: str, body: _Body) -> None:
        indent = "  " * body.depth
        # Only the outermost jaxpr has the user's names of arguments; inner ones repeat JAX's own.
        paths: Sequence[str] = () if body.depth else getattr(jaxpr.debug_info, "arg_names", None) or ()
        labels = [self.read_input(variable, "constant", "", body) for variable in jaxpr.constvars]
        for variable, path in zip(jaxpr.invars, chain(paths, repeat("")), strict=False):
            labels.append(self.read_input(variable, "parameter", path, body))
        self.lines.append(f"{indent}{title} {{ lambda {' '.join(labels)} . let")
        for equation in jaxpr.eqns:
            self.read_equation(equation, self.inner.get(id(equation), ()), body)
        self.note_returned(jaxpr.outvars, body)
        self.lines.append(f"{indent}in ({', '.join(body.written(jaxpr.outvars))}) }}")

    def read_input(self, variable: Any, op: str, path: str, body: _Body) -> str:
        """Add the node of an argument or constant; return its text."""
        name, type_ = self.name_variable(), _type(variable.aval)
        node = self.builder.add(name, op, type_, scope=path, group=body.group, line=len(self.lines))
        self.builder.connect(())
        self.attributes.append(dict(self.notes.get(variable, ())))
        body.bind(node, [variable], [name])
        return f"{name}:{type_}" + (f" ({path})" if path else "")

    def note_returned(self, outputs: Sequence[Any], body: _Body) -> None:
        for position, atom in enumerate(outputs):
            for node, result in body.makers([atom]):
                own = self.attributes[node]
                as_result = f"{position}={result}" if result else str(position)
                own["returned"] = f"{own['returned']},{as_result}" if "returned" in own else as_result

    def read_equation(self, equation: Any, inner: Sequence[tuple[str, Any]], body: _Body) -> None:
        frame = self.read_frames(equation.source_info.traceback, body.caller)
        primitive = equation.primitive.name
        names = [self.name_variable() for _ in equation.outvars]
        types = [_type(variable.aval) for variable in equation.outvars]
        path = _joined(body.scope, str(equation.source_info.name_stack))
        node = self.builder.add(
            names[0] if names else self.name_variable(),
            primitive,
            types[0] if len(types) == 1 else f"({', '.join(types)})",
            scope=_joined(path, primitive),
            group=body.group,
            frame=frame,
            line=len(self.lines),
        )
        makers = body.makers(equation.invars)
        self.builder.connect(maker for maker, _ in makers)
        parameters = _parameters(equation.params, inner)
        self.attributes.append(_attributes(parameters, equation.invars, makers) | self.noted(equation.outvars))
        results = " ".join(map("{}:{}".format, names, types)) or "_"
        operands = " ".join(body.written(equation.invars))
        indent = "  " * (body.depth + 1)
        self.lines.append(f"{indent}{results} = {primitive}{_bracketed(parameters)} {operands}")
        body.bind(node, equation.outvars, names)
        label = equation.params.get("name")
        for key, jaxpr in inner:
            title = f"{key}={label}" if isinstance(label, str) else key
            group = self.builder.add_group(Group(title, _kind(primitive, key), parent=body.group, caller=node))
            self.read(jaxpr, title, _Body(group, body.depth + 2, path, frame))

    def noted(self, variables: Sequence[Any]) -> dict[str, str]:
        return {
            f"{key}_{result}" if result else key: text
            for result, variable in enumerate(variables)
            for key, text in self.notes.get(variable, {}).items()
        }

    def read_frames(self, traceback: Any, caller: int) -> int:
        """Return the index of a traceback's innermost user frame, `caller` if it has no such frame.

        JAX traces a loop's body separately and cuts its tracebacks there: the rest of the stack is the caller's.
        """
        if traceback is None:
            return caller
        key = traceback, caller  # equal for equal stacks; a line makes many
        innermost = self.frame_of_traceback.get(key)
        if innermost is None:
            stack, outer = users_part(self.stacks[traceback]), self.outermost(caller)
            is_cut = not stack or outer is None or (stack[-1].file, stack[-1].function) != (outer.file, outer.function)
            innermost = self.builder.add_stack(stack, caller if is_cut else -1)
            self.frame_of_traceback[key] = innermost
        return innermost

    def outermost(self, frame: int) -> Frame | None:
        frames = self.builder.frames
        while frame >= 0 and frames[frame].parent >= 0:
            frame = frames[frame].parent
        return frames[frame] if frame >= 0 else None

    def name_variable(self) -> str:
        """Return the next unused name of a … z, aa … zz, in JAX's order."""
        number, name = next(self.fresh), ""
        while True:
            number, letter = divmod(number, 26)
            name = chr(97 + letter) + name
            if number == 0:
                return name
            number -= 1


def short_type(value: Any) -> str:
    """Return JAX's short form of a value's type, `f32[8,128]`."""
    return _type(jax.typeof(value))


def _type(aval: Any) -> str:
    """Return JAX's short form of an aval, `f32[8,128]`; its `str` for an aval without a short form."""
    short = getattr(aval, "str_short", None)
    return short(short_dtypes=True) if short else str(aval)


def _written(atom: Any, name_of: dict[Any, str]) -> str:
    """Return a variable's name, or a literal's value and type."""
    return f"{_literal(atom.val)}:{_type(atom.aval)}" if hasattr(atom, "val") else name_of.get(atom, "_")


def _literal(value: Any) -> str:
    """Return a literal as text without dtype, `3`, also for JAX's own ints and floats, which print theirs."""
    if isinstance(value, int) and not isinstance(value, bool):
        return int.__repr__(value)
    return float.__repr__(value) if isinstance(value, float) else str(value)


def _joined(scope: str, name: str) -> str:
    return f"{scope}/{name}" if scope and name else scope or name


def _parameters(params: Mapping[str, Any], inner: Sequence[tuple[str, Any]]) -> dict[str, str]:
    """Return an equation's parameters as text on one line, without None and its jaxprs, which are groups."""
    jaxprs = {key.split("[")[0] for key, _ in inner}
    texts: dict[str, str] = {}
    for key, value in params.items():
        if hasattr(value, "block_mappings"):
            texts |= _grid(value)
        elif key not in jaxprs and value is not None:
            texts[key] = " ".join(str(value).split())
    return texts


_INDEX = re.compile(r"\{ lambda ; (?P<axes>.*?)\s*\. let in (?P<place>\(.*\)) \}")


def _grid(mapping: Any) -> dict[str, str]:
    """Return a Pallas kernel's `grid`, and of each operand, as `block NAME`, its block's type, its own, and a place.

    The place is the block's position as a function of the grid's axes: `(i, j) → (i, 0)`.
    """
    texts = {"grid": str(mapping.grid)}
    for block in mapping.block_mappings:
        # The types of indices say nothing: all are i32.
        place = " ".join(re.sub(r":i32\[\]", "", str(block.index_map_jaxpr)).split())
        if match := _INDEX.fullmatch(place):
            place = f"({', '.join(match['axes'].split())}) → {match['place']}"
        of = f"{_type(block.transformed_block_aval)} of {_type(block.array_aval)}"
        texts[f"block {block.origin}"] = f"{of} at {place}"
    return texts


def _bracketed(parameters: Mapping[str, str]) -> str:
    written = " ".join(
        f"{key}={text if len(text) <= _MAX_PARAMETER else text[: _MAX_PARAMETER - 1] + '…'}"
        for key, text in parameters.items()
    )
    return f"[{written}]" if written else ""


def _attributes(
    parameters: Mapping[str, str], operands: Sequence[Any], makers: Sequence[tuple[int, int]]
) -> dict[str, str]:
    """Return an equation's parameters, shortened, and if it has them `literals` and `operand_results`."""
    # A function's address differs each time, and captures of one program must be equal.
    attributes = {key: shorten_value(_ADDRESS.sub("", text)) for key, text in parameters.items()}
    literals = [f"{i}={_written(v, {})}" for i, v in enumerate(operands) if hasattr(v, "val")]
    if literals:
        attributes["literals"] = ", ".join(literals)
    if any(result for _, result in makers):
        attributes["operand_results"] = ",".join(str(result) for _, result in makers)
    return attributes


def _kind(primitive: str, key: str) -> str:
    if primitive in ("scan", "while"):
        return "condition" if key.startswith("cond") else "body"
    return "branch" if primitive == "cond" else "call"
