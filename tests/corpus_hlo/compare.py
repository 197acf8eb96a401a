"""Where our graph of a module differs from what XLA's parser read, by position."""

import re

from explorer.model.types import parse_type

_NUMBER = re.compile(r"[._#\d]+$")
_LEFT_OUT = re.compile(r"/\*.*?\*/|\{[^{}]*\}|\s", re.S)
_RETYPED = ("send", "send-done", "recv", "recv-done", "outfeed")
_ASYNC = ("async-start", "async-update", "async-done")


def differences(graph, computations):
    """What differs, in words; nothing if all of the module is read alike."""
    return list(_Comparison(graph, computations).differences())


class _Comparison:
    def __init__(self, graph, computations):
        self.graph, self.computations = graph, computations
        self.nodes = {}
        for node in graph.nodes:
            self.nodes.setdefault(int(graph.group[node.index]), []).append(node)
        self.called = {}
        for call in graph.calls:
            self.called.setdefault(call.node, []).append(call.group)
        # By computation of XLA, the group of ours: those with a name, then others as their callers are compared.
        number_of = {computation.name: number for number, computation in computations.items()}
        self.matched = {number_of[g.name]: i for i, g in enumerate(graph.groups) if g.name in number_of}
        # XLA gives what an asynchronous instruction wraps the metadata of that instruction.
        wrapped = {n for c in computations.values() for i in c.instructions if i.op in _ASYNC for n in i.called}
        self.wrapped_roots = {id(i) for number in wrapped for i in computations[number].instructions}
        self.wrappers = set()  # the computations that XLA makes for `negate-start`

    def differences(self):
        if loose := self.nodes.get(-1):
            yield f"{len(loose)} instructions outside of computations"
        # XLA numbers callees before their callers.
        for number in sorted(self.computations, reverse=True):
            computation = self.computations[number]
            if number in self.matched:
                yield from self.of_computation(computation, self.nodes.get(self.matched[number], []))
            elif number not in self.wrappers:
                yield f"computation {computation.name} isn't there"
        entries = [i for i, group in enumerate(self.graph.groups) if group.kind == "entry"]
        theirs = [self.matched.get(number) for number, one in self.computations.items() if one.is_entry]
        if entries and entries != theirs:
            yield "another computation is the entry"
        more = set(range(len(self.graph.groups))) - set(self.matched.values())
        yield from (f"computation {self.graph.groups[group].name} is ours alone" for group in sorted(more))

    def of_computation(self, computation, nodes):
        theirs = computation.instructions
        if len(nodes) != len(theirs):
            names = [node.name for node in nodes][:12], [i.name for i in theirs][:12]
            yield f"computation {computation.name}: {len(nodes)} instructions, XLA has {len(theirs)}: {names}"
            return
        position = {node.index: i for i, node in enumerate(nodes)}
        wrapped = {}
        for i, (node, instruction) in enumerate(zip(nodes, theirs, strict=True)):
            wrapper = self.wrapper(instruction, wrapped)
            wrapped[i] = wrapper
            for what, mine, xla in self.of_instruction(node, instruction, position, wrapper):
                if mine != xla:
                    yield f"{computation.name}, {node.name}: {what} {mine!r}, XLA has {xla!r}"

    def wrapper(self, instruction, wrapped):
        """The computation that an asynchronous instruction runs: its own, or that of the one it goes on with."""
        if instruction.op not in _ASYNC:
            return None
        return instruction.called[0] if instruction.called else wrapped.get(next(iter(instruction.operands), None))

    def of_instruction(self, node, instruction, position, wrapper):
        op, called, target = instruction.op, instruction.called, instruction.attributes["custom_call_target"]
        if wrapper is not None:
            root = next(i for i in self.computations[wrapper].instructions if i.is_root)
            if node.op != op:  # `negate-start`, for which XLA makes a computation
                op = f"{root.op}-{op.partition('-')[2]}"
                self.wrappers.add(wrapper)
            # What an asynchronous instruction says of the one that it wraps, where it begins or where it ends.
            is_named = node.index in self.called
            called = () if not is_named else (wrapper,) if node.op == instruction.op else root.called
            target = root.attributes["custom_call_target"] if "custom_call_target" in node.attributes else ""
        elif op in _ASYNC:  # what it goes on with began nowhere
            op = f"{node.op.rpartition('-')[0]}-{op.partition('-')[2]}"
        yield "opcode", node.op, op
        # XLA tells equal names of several computations apart by a number.
        yield "name", _NUMBER.sub("", node.name), _NUMBER.sub("", instruction.name)
        # XLA infers what a person leaves out, and makes these anew whatever is written.
        if node.type and op not in _RETYPED:
            yield "type", _plain(node.type), instruction.type
            layouts = [array.minor_to_major for array in parse_type(node.type).arrays]
            if len(layouts) == len(instruction.layouts):
                for i, (mine, theirs) in enumerate(zip(layouts, instruction.layouts, strict=True)):
                    yield f"layout {i}", mine, theirs if mine else ()
        yield "operands", [position.get(o.index, o.name) for o in node.operands], list(instruction.operands)
        yield "called", *self.calls(node, called)
        attributes = node.attributes
        yield "root", "root" in attributes and not instruction.is_root, False
        if node.scope or id(instruction) not in self.wrapped_roots:
            yield "op_name", node.scope, instruction.attributes["op_name"]
        yield "custom_call_target", attributes.get("custom_call_target", ""), target
        for key in ("parameter_number", "index"):
            yield key, attributes.get(key, "0").strip(), instruction.attributes[key]

    def calls(self, node, theirs):
        ours = self.called.get(node.index, [])
        mine = list(ours)
        for number in theirs:
            if self.matched.get(number) in mine:
                mine.remove(self.matched[number])
        # Those written out where they are called are in text order for both.
        unnamed = sorted({number for number in theirs if number not in self.matched})
        if len(mine) == len(unnamed):
            self.matched |= dict(zip(unnamed, sorted(mine), strict=True))
        return sorted(ours), sorted(self.matched.get(number, -1) for number in theirs)


def _plain(text):
    """A type without layouts, comments and spaces."""
    before = None
    while before != text:
        before, text = text, _LEFT_OUT.sub("", text)
    return text
