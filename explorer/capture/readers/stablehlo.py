"""Reader of MLIR text into a Graph: StableHLO above all, other dialects as far as they are written the same way.

The text is from `Lowered.as_text(debug_info=True)`, a dump, or a file: every operation is one line, or opens regions
that later lines close. Functions and regions are groups; a region's arguments are nodes, so that no edge crosses into a
loop. Lines that MLIR wouldn't print are unread: `open_hlo` has such a text printed again by MLIR's own parser in a
subprocess. No text of a file reaches that parser in this process: `feature_group_count10x5x4x= 1 : i64` in a
convolution aborts it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from explorer.capture.readers.graph_builder import GraphBuilder, users_part
from explorer.capture.readers.mlir_text import (
    SYMBOL,
    Locations,
    LoopArgument,
    loop_arguments,
    names_unread_arguments,
    read_attributes,
    read_dictionary,
    result_shardings,
    result_type,
    signature_of,
    skeleton,
    unpaired,
)
from explorer.errors import UnreadableTextError
from explorer.model.attributes import Attributes, tabulate
from explorer.model.graph import Graph, Group

_VALUE = r"%[\w$.]++(?::\d++)?"
_RESULTS = re.compile(rf"({_VALUE}(?:, {_VALUE})*+) = ")
_OPERATION = re.compile(r'"([\w$.\-]++)"|([A-Za-z_][\w$]*+(?:\.[\w$]++)*+)')
_SYMBOL_NAME = re.compile(r'\bsym_name = "((?:[^"\\]|\\.)*+)"')
_CALLEE = re.compile(r"\b(?:callee|decomposition) = (?:#vhlo\.)?@?([\w$.\-]++)|\bcalled_computations = \[@([\w$.\-]++)")
# Its name comes after its attributes, and a sharding among these has strings. Never past a `%`: so the time grows
# in proportion.
_ARGUMENT_PATH = re.compile(r'%([\w$.]++): (?:[^%"]|"[^%"]*+")*? loc\("([^"]*)"\)')
_IN_ANGLES = r"(?:[^<>\-]++|->|-"  # an arrow closes none
_ARGUMENT = re.compile(
    rf"%([\w$.]++): ((?:[^,()<>]++|<{_IN_ANGLES}|<{_IN_ANGLES}|<(?:[^<>\-]++|->|-)*+>)*+>)*+>|\([^()]*+\))++)"
)
_SPACED = re.compile(r"(%[\w$.]++)\s*+:\s*+")
_COLON = re.compile(r"(?:(?<=[)}\]>])|(?<=\w))\s*+:\s++(?=[(!a-z])(?=[^\"]*+$)")
_ALIAS = re.compile(r"![\w$]++(?![\w$.<])")
_REFERENCE = re.compile(r"%([\w$.]++)")
_MODULE_NAME = re.compile(r"\bmodule @([\w$.\-]++|\"[^\"]*+\")(?: attributes \{(.*)\} \{$)?")
# An argument's attributes: `%arg0: tensor<8xf32> {jax.buffer_donor = true, mhlo.sharding = "{replicated}"}`.
_ARGUMENT_ATTRIBUTES = re.compile(r'%([\w$.]++): [^%{]*?\{((?:[^{}"]++|"(?:[^"\\]|\\.)*+"|\{[^{}]*+\})*+)\}')
_LOCATION = re.compile(r" loc\((#loc\d*+|[^()]*+|\".*)\)\s*$")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*+(?:"|\\?\Z)')
_REGION = re.compile(r"(cond|reducer|do|else|then|default|case)\b")
# `sdy.mesh @mesh = <["data"=4, "model"=2]>`
_MESH = re.compile(r"\bsdy\.mesh\b[^<\[]*+<?\[([^\]]*+)\]")
_MESH_AXIS = re.compile(r'"([^"]++)"\s*+=\s*+(\d++)')
_NO_NODE = re.compile(r"#|//|!\w+ = |\"?builtin\.module\b|module\b|\"?sdy\.mesh\b")
# Attributes on lines of their own, and an operation or a region inside a line: these MLIR doesn't print.
_PART = re.compile(
    r'^[a-zA-Z_][\w$.]*+\s*+=|<\{$|= \{$|attributes \{$|^(?:%[^"]*= )?""\(.*(?<!\()\{$'
    r'|[^,\s]\s++%[\w$.]++(?::\d++)?(?:\s*+,\s*+%[\w$.]++(?::\d++)?)*+\s*+=\s*+["a-zA-Z_]|\S\s+"?(?:\w++\.)?return\b'
    r"|\{\s*+[%^]|\(\{."
)
_LONGEST_RETURN = len('"stablehlo.')  # before the word, where it is a line's own operation
_OPENING, _CLOSING = "({[", ")}]"
_UNFINISHED = ("=", ",", ":", "->", "(", "[", "<", "applies", "private", "br")
_FUNCTIONS = ("func.func", "vhlo.func_v1", "func", "builtin.func")
_CALLS = ("call", "func.call", "vhlo.call_v1")
_UNDOTTED = ("return", "call", "call_indirect", "constant", "br", "cond_br")  # written without dialect
_MLIR = re.compile(r'func\.func|\.func_v1|^[ \t]*+(?:module\b|(?:%[\w$.:, %]++= )?"?[a-z_]++\.\w++"?[ (])', re.M)


def read_stablehlo(text: str) -> Graph:
    """Read an MLIR module's text, in the short or the generic form, into a graph; without debug info it has no sources.

    There is one node per operation and per argument of a function or region, in the text's order. Its `unread` are the
    lines that should be operations but could not be read.

    Raises:
        UnreadableTextError: The text holds no MLIR operation at all.
    """
    graph = _Reader(text).read() if _MLIR.search(text) else None
    if graph is None or not graph.names:
        first = text.strip()[:60].partition("\n")[0]
        raise UnreadableTextError(
            f"this text holds no MLIR operation: it starts with {first!r}." if first else "this text is empty."
        )
    return graph


@dataclass
class _Region:
    """An open region: the operation it belongs to, its group, and the values visible only inside."""

    owner: int
    group: int
    values: list[str] = field(default_factory=list[str])
    # A `while` prints its own arguments once, for each of its regions: their names and types.
    iteration: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    is_generic: bool = False  # in the generic form regions end by `})`, and the types come after


@dataclass(frozen=True)
class _Operation:
    """One operation's line, taken apart: name, results as written (`%0:2`), body without the location, and the
    location.

    It is generic if its name is in quotes, as in MLIR's generic form; `opens` if a region opens at its end.
    """

    op: str
    results: str
    body: str
    location: str | None
    is_generic: bool
    opens: bool

    @staticmethod
    def of(line: str, results: str, name: re.Match[str]) -> _Operation:
        at = line.rfind(" loc(")
        location = _LOCATION.match(line, at) if at >= 0 else None
        if at >= 0 and location is None:
            location = _LOCATION.search(line)
        body = line[name.end() : location.start() if location else len(line)]
        is_generic = name[1] is not None
        if ":" in body and " : " not in body:  # by hand: `return %0: tensor<f32>`
            body = _COLON.sub(" : ", body)
        return _Operation(
            name[1] or name[2], results, body, location[1] if location else None, is_generic, _opens_region(line)
        )

    @property
    def type(self) -> str:
        """Return the type of the operation's results.

        Empty if only the line that closes the operation's region has the type.
        """
        if self.opens and self.is_generic:
            return ""
        return result_type(self.op, self.body, is_single=self.results.count("%") == 1 and ":" not in self.results)


class _Reader:
    def __init__(self, text: str) -> None:
        self.lines = text.split("\n")
        self.locations = Locations(self.lines)
        self.builder = GraphBuilder()
        self.regions: list[_Region] = []
        self.values: dict[str, list[int]] = {}  # by name, the innermost last
        self.calls: list[tuple[int, str]] = []
        self.iteration: list[tuple[str, str]] = []
        self.module: dict[str, str] = {}
        self.last = -1
        self.unread: list[int] = []
        # By operation, the type and the place that the line closing its regions has.
        self.types: dict[int, str] = {}
        self.places: dict[int, tuple[str, int]] = {}
        # The code of each node's operation and text without operands; equal for most of a kind.
        self.attributes: list[int] = []
        self.skeletons: dict[tuple[str, str, str], int] = {}
        self.aliases: dict[str, str] = {}  # of types
        self.located: dict[str, tuple[str, int]] = {}  # by the text of a location

    def read(self) -> Graph:
        self.read_lines()
        self.nest_functions()
        skeletons = list(self.skeletons)
        attributes = Attributes(lambda: tabulate(self.attributes, [*map(_pairs, skeletons)]))
        graph = self.with_later_parts(self.builder.build(attributes, self.module))
        if self.aliases:
            types = [_ALIAS.sub(lambda alias: self.aliases.get(alias[0], alias[0]), text) for text in graph.types]
            graph = replace(graph, types=types)
        return replace(graph, unread=tuple(self.unread))

    def read_lines(self) -> None:
        for number, line in enumerate(self.lines):
            line = line.strip()
            if line.startswith("{-#"):  # the data of large constants
                break
            if "//" in line and '"' not in line:
                line = line.partition("//")[0].rstrip()
            if line.startswith("!"):
                alias, _, type_ = line.partition(" = ")
                self.aliases[alias.strip()] = type_.strip()
            elif line and line[0] != "#" and not line.startswith("//"):
                self.read_line(number, line) if _is_statement(line) else self.pass_over(number, line)

    def note_attributes(self, op: str, text: str, operand_results: str = "") -> None:
        self.attributes.append(self.skeletons.setdefault((op, text, operand_results), len(self.skeletons)))

    def read_line(self, number: int, line: str) -> None:
        if line.startswith("}"):
            self.close(number, line)
        elif line.startswith("^"):
            self.add_arguments(number, line)
        elif _REGION.match(line) and line.endswith("{"):
            kind = {"cond": "condition", "do": "body"}.get(line.partition(" ")[0], "region")
            self.open_region(number, self.last, kind, self.iteration)
            self.add_arguments(number, line)
        elif _NO_NODE.match(line):
            self.open_module(line)
        else:
            self.read_operation(number, line)

    def pass_over(self, number: int, line: str) -> None:
        """Leave a line unread, but keep count of the braces."""
        self.unread.append(number)
        opened = line.count("{") - line.count("}")
        group = self.regions[-1].group if self.regions else -1
        self.regions += (_Region(-1, group) for _ in range(opened))
        for _ in range(-opened):
            self.pop_region()

    def open_module(self, line: str) -> None:
        if module := _MODULE_NAME.search(line):
            self.module = {"name": module[1].strip('"')} | read_dictionary(module[2] or "")
        axes = _MESH_AXIS.findall(mesh[1]) if (mesh := _MESH.search(line)) else ()
        if axes:  # a program with keys has an additional, empty mesh
            self.module.setdefault("mesh", ",".join(f"{name}={int(size)}" for name, size in axes))
        if line.endswith("{"):
            self.regions.append(_Region(-1, -1, is_generic=line.endswith("({")))

    def read_operation(self, number: int, line: str) -> None:
        results = _RESULTS.match(line)
        name = _OPERATION.match(line, results.end() if results else 0)
        op = (name[1] or name[2]) if name else ""
        if name is not None and op in _FUNCTIONS:
            self.open_function(number, line, is_generic=name[1] is not None)
        elif name is not None and ("." in op or op in _UNDOTTED):
            self.add_operation(number, _Operation.of(line, results[1] if results else "", name))
        else:
            self.unread.append(number)

    def add_operation(self, number: int, operation: _Operation) -> None:
        op, body = operation.op, operation.body
        place = self.locate(operation.location) if operation.location is not None else ("", -1)
        self.add_node(number, _REFERENCE.findall(operation.results), op, operation.type, place)
        text, results = skeleton(body)
        loop = loop_arguments(op, body)
        names = _operands(operation, loop)
        if len(names) > 2 and op.endswith(".reduce") and not operation.is_generic:
            names, results = unpaired(names), ",".join(unpaired(results.split(",")))
        self.note_attributes(op, text, results)
        self.connect(names)
        self.iteration = [] if op.startswith("scf.") else [(name, type_) for name, _, type_ in loop]
        self.note_callee(op, body)
        if operation.opens:
            self.open_inside(number, operation, loop)

    def open_inside(self, number: int, operation: _Operation, loop: Sequence[LoopArgument]) -> None:
        """Open the region at the end of an operation's line, with the arguments that the line names."""
        self.open_region(number, self.last, "region", [], is_generic=operation.is_generic)
        if operation.is_generic:
            return
        if names_unread_arguments(operation.op, operation.body):
            self.unread.append(number)
        self.add_arguments(number, operation.body)
        for name, _, type_ in loop if operation.op.startswith("scf.") else ():
            self.add_argument(number, name, type_)

    def note_callee(self, op: str, body: str) -> None:
        if op in _CALLS and (symbol := SYMBOL.search(body)):
            self.calls.append((self.last, symbol[1].strip('"')))
        elif ("callee" in body or "decomposition" in body or "called_computations" in body) and (
            called := _CALLEE.search(body)
        ):
            self.calls.append((self.last, called[1] or called[2]))

    def add_node(self, number: int, names: Sequence[str], op: str, type_: str, place: tuple[str, int]) -> None:
        group = self.regions[-1].group if self.regions else -1
        name = f"%{names[0]}" if names else op
        self.last = self.builder.add(name, op, type_, scope=place[0], group=group, frame=place[1], line=number)
        self.define(names, self.last)

    def locate(self, text: str) -> tuple[str, int]:
        """Return a location's scope path and its innermost frame's index, -1 for none; cached, as many share one."""
        if text not in self.located:
            scope, frames = self.locations.read(text)
            self.located[text] = scope, self.builder.add_stack(users_part(frames))
        return self.located[text]

    def connect(self, names: Iterable[str]) -> None:
        # An unknown value leaves no edge; an operation is never its own operand.
        self.builder.connect(i for i in map(self.find, names) if i >= 0)

    def find(self, name: str) -> int:
        nodes = self.values.get(name)
        return nodes[-1] if nodes else -1

    def define(self, names: Sequence[str], node: int) -> None:
        for name in names:
            self.values.setdefault(name, []).append(node)
        if self.regions:
            self.regions[-1].values += names

    def open_function(self, number: int, line: str, *, is_generic: bool) -> None:
        symbol = _SYMBOL_NAME.search(line) if is_generic else SYMBOL.search(line)
        if not line.endswith("{"):  # declared, without a body
            return
        name = symbol[1].strip('"') if symbol else "function"
        group = self.builder.add_group(Group(name, "entry" if name == "main" else "function"))
        self.regions.append(_Region(-1, group, is_generic=is_generic))
        if not is_generic:
            signature = signature_of(line)
            self.add_arguments(number, signature)
            if symbol and symbol[1] == "main" and (shardings := result_shardings(line[len(signature) :])):
                self.module["result_shardings"] = shardings

    def open_region(
        self, number: int, owner: int, kind: str, iteration: list[tuple[str, str]], *, is_generic: bool = False
    ) -> None:
        parent = self.regions[-1].group if self.regions else -1
        name = self.builder.names[owner] if owner >= 0 else "region"
        group = self.builder.add_group(Group(f"{name} {kind}", kind, parent=parent, caller=owner))
        self.regions.append(_Region(owner, group, iteration=iteration, is_generic=is_generic))
        for argument, type_ in iteration:
            self.add_argument(number, argument, type_)

    def close(self, number: int, line: str) -> None:
        """Close a region at `}`; read the next region of the same operation, or the operation's type and place."""
        closed = self.pop_region()
        after = line[1:].lstrip()
        is_next = after == ", {" if closed.is_generic else line.endswith("{")
        if is_next or (after.startswith(",") and line.endswith("{")):
            kind = "body" if after.startswith("do") else "region"
            self.open_region(number, closed.owner, kind, closed.iteration, is_generic=closed.is_generic)
            self.add_arguments(number, after)
        elif closed.owner >= 0:
            self.note_ending(closed.owner, line, after)

    def pop_region(self) -> _Region:
        closed = self.regions.pop() if self.regions else _Region(-1, -1)
        for name in closed.values:
            if self.values[name]:  # a damaged text may close regions in another order than it opened them
                self.values[name].pop()
        return closed

    def note_ending(self, owner: int, line: str, after: str) -> None:
        """Keep type, place and attributes from the line that closes an operation's regions."""
        location = _LOCATION.search(line)
        if location is not None:
            self.places.setdefault(owner, self.locate(location[1]))
        if "{" in after:  # `}) {dimension = 0 : i64} : (…) -> …`, as older MLIR has it
            op, text, results = list(self.skeletons)[self.attributes[owner]]
            key = (op, text + skeleton(after.lstrip(")"))[0], results)
            self.attributes[owner] = self.skeletons.setdefault(key, len(self.skeletons))
        if " : " in line:
            self.types.setdefault(owner, result_type("", line[: location.start()] if location else line))

    def add_arguments(self, number: int, signature: str) -> None:
        if " :" in signature:  # by hand: `%x : tensor<f32>`
            signature = _SPACED.sub(r"\1: ", signature)
        paths = dict(_ARGUMENT_PATH.findall(signature))
        attributes = dict(_ARGUMENT_ATTRIBUTES.findall(signature)) if "{" in signature else {}
        arguments = _ARGUMENT.findall(_without_strings(signature))
        if signature.startswith("reducer") and len(arguments) > 2:
            arguments = unpaired(arguments)
        for name, type_ in arguments:
            type_ = type_.partition(" loc")[0].partition(" {")[0].strip()
            self.add_argument(number, name, type_, paths.get(name, ""), attributes.get(name, ""))

    def add_argument(self, number: int, name: str, type_: str, path: str = "", attributes: str = "") -> None:
        group = self.regions[-1].group if self.regions else -1
        node = self.builder.add(f"%{name}", "parameter", type_, scope=path, group=group, line=number)
        self.builder.connect(())
        self.note_attributes("parameter", attributes)
        self.define([name], node)

    def with_later_parts(self, graph: Graph) -> Graph:
        """Return the graph with the types and places that came after the operations' regions."""
        if not self.types and not self.places:
            return graph
        types, scopes = list(graph.types), list(graph.scopes)
        type_, scope, frame = graph.type.copy(), graph.scope.copy(), graph.frame.copy()
        code = {text: i for i, text in enumerate(types)}
        for node, text in self.types.items():
            if not types[type_[node]]:
                type_[node] = code.setdefault(text, len(code))
        code_of_scope = {text: i for i, text in enumerate(scopes)}
        for node, (path, at) in self.places.items():
            if frame[node] < 0 and not scopes[scope[node]]:
                scope[node] = code_of_scope.setdefault(path, len(code_of_scope))
                frame[node] = at
        return replace(
            graph, type=type_, scope=scope, frame=frame, types=list(code), scopes=list(code_of_scope),
            frames=self.builder.frames,
        )  # fmt: skip

    def nest_functions(self) -> None:
        groups = self.builder.groups
        number_of = {group.name: i for i, group in enumerate(groups) if group.kind in ("function", "entry")}
        for node, callee in self.calls:
            called = number_of.get(callee, -1)
            if called >= 0 and groups[called].caller < 0 and groups[called].kind == "function":
                groups[called] = replace(groups[called], caller=node, parent=self.builder.group_of[node])


def _pairs(skeleton: tuple[str, str, str]) -> list[tuple[str, str]]:
    op, text, operand_results = skeleton
    pairs = [*read_dictionary(text).items()] if op == "parameter" else read_attributes(op, text)
    return [*pairs, ("operand_results", operand_results)] if operand_results else pairs


def _is_statement(line: str) -> bool:
    """Return True for a line as MLIR prints it: neither a part of an operation nor several."""
    plain = _without_strings(line)
    if "//" in plain or (line[0] != "^" and line.endswith(_UNFINISHED)):
        return False
    # Searched only if a cheap sign is there: most lines have no match.
    has_sign = "{" in plain or plain.count("=") != (line[0] == "%") or plain.find("return", _LONGEST_RETURN) >= 0
    if has_sign and _PART.search(plain):
        return False
    plain = plain.removesuffix("{").removesuffix("(")
    return line[0] == "}" or [*map(plain.count, _OPENING)] == [*map(plain.count, _CLOSING)]


def _opens_region(line: str) -> bool:
    """Return True if a line ends in the brace of a region, not of attributes."""
    if not line.endswith("{") or line.endswith(("<{", "= {")):
        return False
    if line.startswith("}"):
        # After `})` come attributes.
        return not line.startswith("})") or line.endswith("({")
    operation = _OPERATION.match(line, m.end() if (m := _RESULTS.match(line)) else 0)
    return line.endswith("({") if operation is not None and operation[1] else True


def _without_strings(text: str) -> str:
    return _STRING.sub('""', text) if '"' in text else text


def _operands(operation: _Operation, loop: Sequence[LoopArgument]) -> list[str]:
    if operation.op == "scf.for":
        return [name for name in _REFERENCE.findall(operation.body) if name not in {own for own, *_ in loop}]
    return [start for _, start, _ in loop] or _used(operation.body, is_generic=operation.is_generic)


def _used(body: str, *, is_generic: bool) -> list[str]:
    """Return the names of operands in a body: in the generic form those of its first parentheses."""
    if is_generic:
        return _REFERENCE.findall(body[: body.find(")")])
    arguments = body.rpartition(" : ")[0] or body
    if ": " not in arguments and '"' not in arguments:
        return _REFERENCE.findall(arguments)
    # A region's arguments, `(%x: tensor<f32>) {`, are its own.
    return _REFERENCE.findall(_ARGUMENT.sub("", _without_strings(arguments)))
