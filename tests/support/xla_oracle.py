"""XLA's own parser, to hold our reader against."""

import re

from jaxlib import _hlo

from explorer.capture.readers.hlo import read_hlo

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
    for computation in _hlo.hlo_module_from_text(text).computations():
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
    return graph
