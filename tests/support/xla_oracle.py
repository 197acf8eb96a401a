"""XLA's own parser, to hold our reader against."""

import re

from jaxlib import _hlo

from explorer.capture.readers.hlo import read_hlo
from tests.support.hlo_proto import instructions

SPELLINGS = {
    "as printed": {},
    "short": {"short": True},
    "no percent": {"print_percent": False},
    "operand types": {"print_operand_shape": True},
    "operand types, no percent": {"print_operand_shape": True, "print_percent": False},
    "no layouts": {"include_layout_in_shapes": False},
    "no signatures": {"print_program_shape": False},
    "indented": {"indent_amount": 2},
}


def spelled(module, spelling):
    """The module as XLA prints it with some options."""
    options = dict(SPELLINGS[spelling])
    printing = _hlo.HloPrintOptions.short_parsable() if options.pop("short", False) else _hlo.HloPrintOptions()
    for name, value in options.items():
        setattr(printing, name, value)
    return module.to_string(printing)


def _typed(text):
    """Without layouts and comments, which a spelling may leave out."""
    return re.sub(r"\{[^{}]*\}|/\*[^*]*\*/| ", "", text)


def assert_read_as_xla_does(text):
    """Names, opcodes, types, operands, users and computations of our graph are those of XLA's parser."""
    graph = read_hlo(text)
    expected = {}
    module = _hlo.hlo_module_from_text(text)
    for computation in module.computations():
        for instruction in computation.instructions():
            expected[computation.name, instruction.name] = instruction
    assert graph.unread == ()
    assert len(graph) == len(expected)
    assert {(node.group.name, node.name) for node in graph.nodes} == set(expected)
    for node in graph.nodes:
        instruction = expected[node.group.name, node.name]
        printed = instruction.to_string()
        # XLA's enum calls log-plus-one kLog1p, so its own printing of the one instruction is the oracle.
        # An asynchronous call of `gather` is `async-start`, which XLA prints as `gather-start`.
        op = f"{node.op.removeprefix('async')}(" if node.op.startswith("async-") else f" {node.op}("
        assert op in printed
        assert _typed(f"= {node.type}") in _typed(printed) or not node.type
        assert [o.name for o in node.operands] == [o.name for o in instruction.operands()]
        assert {u.name for u in node.users} == {u.name for u in instruction.users()}
    _assert_attributes(graph, instructions(module.as_serialized_hlo_module_proto()))
    return graph


def _assert_attributes(graph, expected):
    """What is printed of each instruction, as numbers, is what XLA has in its proto."""
    for node in graph.nodes:
        attributes, proto = node.attributes, expected[node.group.name, node.name]
        assert attributes.get("custom_call_target", "") == proto["custom_call_target"]
        if node.op not in ("iota", "fft"):  # these have a key of their own
            assert _numbers(attributes.get("dimensions", "")) == proto["dimensions"]
        assert _window(attributes.get("window", "")) == proto["window"]
        if node.op == "parameter":
            assert int(attributes["parameter_number"]) == proto["parameter_number"]
        if node.op == "get-tuple-element":
            assert int(attributes["index"]) == proto["index"]
        if "channel_id" in attributes:  # XLA numbers those that have none
            assert int(attributes["channel_id"]) == proto["channel_id"]
        groups = attributes.get("replica_groups", "{}")
        if groups.startswith("{{"):
            assert [_numbers(group) for group in groups[1:-1].split("},{")] == proto["replica_groups"]
        if "root" in attributes:  # a person may leave out ROOT
            assert proto["root"]


def _numbers(text):
    return [int(number) for number in re.findall(r"\d+", text)]


def _window(text):
    """Of each dimension: size, stride, padding below."""
    fields = {name: value.split("x") for name, value in (field.split("=") for field in text.strip("{}").split())}
    sizes = fields.get("size", [])
    strides, pads = fields.get("stride", ["1"] * len(sizes)), fields.get("pad", ["0"] * len(sizes))
    return [[int(size), int(s), int(p.partition("_")[0])] for size, s, p in zip(sizes, strides, pads, strict=True)]
