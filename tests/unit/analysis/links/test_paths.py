"""What the path of an operation says, in the notations of jaxprs and of HLO."""

import pytest

from explorer.analysis.links.paths import ParsedPath, parse_path, phase


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("mul", ((), (), "mul", 0, False)),
        ("jit(f)/mul", ((), (), "mul", 0, False)),
        ("jit(f)/jit(g)/mul", ((), ("jit:g",), "mul", 0, False)),
        ("jit(f)/jit(g)", ((), ("jit:g",), "jit", 0, False)),
        ("pjit(f)/pjit(g)/xla_call(h)/mul", ((), ("jit:g", "jit:h"), "mul", 0, False)),
        ("jit(f)/pjit", ((), (), "jit", 0, False)),
        ("transpose(jvp(f))/mul", (("transpose", "jvp"), ("f",), "mul", 0, False)),
        ("transpose(jvp())/mul", (("transpose", "jvp"), (), "mul", 0, False)),
        ("jit(f)/transpose(jvp(jit(g)))/mul", (("transpose", "jvp"), ("jit:g",), "mul", 0, False)),
        ("jit(f)/vmap(layer)/block/mul", (("vmap",), ("block", "layer"), "mul", 0, False)),
        ("jit(f)/while/body/mul", ((), (), "mul", 1, False)),
        ("jit(f)/while/body/closed_call/mul", ((), (), "mul", 1, True)),
        ("jit(f)/while/body/closed_call/while/body/mul", ((), (), "mul", 2, False)),
        ("jit(f)/while/body/eval_jaxpr/while/body/closed_call/mul", ((), (), "mul", 2, True)),
        ("jit(f)/closed_call/mul", ((), (), "mul", 0, False)),  # of no loop
        ("jit(f)/scan", ((), (), "while", 0, False)),
        ("jit(f)/while", ((), (), "while", 0, False)),
        ("jit(f)/cond/branch_1_fun/mul", ((), ("branch:1",), "mul", 0, False)),
        ("jit(f)/cond/branch_12_fun/b/a/mul", ((), ("a", "b", "branch:12"), "mul", 0, False)),
        ("jit(f)/branch_1/mul", ((), ("branch_1",), "mul", 0, False)),
        ("jit(f)/checkpoint/remat/custom_jvp_call/shard_map/mul", ((), (), "mul", 0, False)),
        ("a(b/c)/mul", ((), ("a(b", "c)"), "mul", 0, False)),
        ("", ((), (), "", 0, False)),
    ],
)
def test_a_path_is_parsed(path, expected):
    assert parse_path(path) == ParsedPath(*expected)


@pytest.mark.parametrize(
    ("scope", "expected"),
    [("jit(f)/transpose(jvp(g))/mul", "backward"), ("jit(f)/jvp(g)/mul", "forward"), ("jit(f)/g/mul", ""), ("", "")],
)
def test_which_way_it_goes(scope, expected):
    assert phase(scope) == expected
