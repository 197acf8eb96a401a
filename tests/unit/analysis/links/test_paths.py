"""What the path of an operation says, in the notations of jaxprs and of HLO."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from explorer.analysis.analysis import parse_path
from explorer.analysis.source_paths import phase


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("mul", ((), "mul")),
        ("jit(f)/mul", ((), "mul")),
        ("jit(f)/jit(g)", ((), "jit")),
        ("pjit(f)/pjit(g)/xla_call(h)/mul", ((), "mul")),
        ("jit(f)/pjit", ((), "jit")),
        ("transpose(jvp(f))/mul", (("transpose", "jvp"), "mul")),
        ("transpose(jvp())/mul", (("transpose", "jvp"), "mul")),
        ("jit(f)/transpose(jvp(jit(g)))/mul", (("transpose", "jvp"), "mul")),
        ("jit(f)/vmap(layer)/block/mul", (("vmap",), "mul")),
        ("jit(f)/while/body/closed_call/while/body/mul", ((), "mul")),
        ("jit(f)/scan", ((), "while")),
        ("jit(f)/while", ((), "while")),
        ("jit(f)/cond/branch_12_fun/b/a/mul", ((), "mul")),
        ("a(b/c)/mul", ((), "mul")),
        ("", ((), "")),
    ],
)
def test_a_path_is_parsed(path, expected):
    assert parse_path(path) == expected


@given(st.lists(st.sampled_from(["transpose", "jvp", "vmap", "jit"])), st.text(st.characters(codec="ascii")))
def test_any_path_is_parsed_and_has_the_transforms_around_it(around, inside):
    transforms, primitive = parse_path(inside)
    path = "".join(f"{word}(" for word in around) + ")" * len(around) + f"/{inside}"
    outer = around[: around.index("jit")] if "jit" in around else around
    assert parse_path(path) == ((*outer, *transforms), primitive)


@given(st.lists(st.sampled_from(["attention", "mlp", "norm"]), max_size=3))
def test_transforms_calls_and_scopes_are_the_same_however_they_are_nested(scopes):
    inner = "/".join([*scopes, "mul"])
    whole = parse_path(f"jit(f)/transpose(jvp(jit(g)))/{inner}")
    assert whole == parse_path(f"jit(f)/transpose(jvp())/jit(g)/{inner}") == (("transpose", "jvp"), "mul")


@pytest.mark.parametrize(
    ("scope", "expected"),
    [("jit(f)/transpose(jvp(g))/mul", "backward"), ("jit(f)/jvp(g)/mul", "forward"), ("jit(f)/g/mul", ""), ("", "")],
)
def test_which_way_it_goes(scope, expected):
    assert phase(scope) == expected
