"""What each operation reads through the walls of kernels, of modules whose dataflow is plain to see."""

import numpy as np
import pytest

from explorer.analysis.diff.match_graphs import unfused_dataflow
from explorer.capture.readers.hlo import read_hlo

PAIR = """HloModule m
inner {
  i.p = f32[8] parameter(1)
  i.q = f32[8] parameter(0)
  ROOT i.r = f32[8] subtract(i.p, i.q)
}
outer {
  o.p = f32[8] parameter(0)
  o.q = f32[8] parameter(1)
  o.s = f32[8] sine(o.p)
  o.k = f32[8] fusion(o.q, o.s), kind=kLoop, calls=inner
  o.c = f32[8] cosine(o.k)
  ROOT o.t = (f32[8], f32[8]) tuple(o.c, o.q)
}
ENTRY main {
  x = f32[8] parameter(0)
  y = f32[8] parameter(1)
  k = (f32[8], f32[8]) fusion(x, y), kind=kLoop, calls=outer
  first = f32[8] get-tuple-element(k), index=0
  second = f32[8] get-tuple-element(k), index=1
  n = f32[8] negate(first)
  a = f32[8] add(second, n)
  ROOT out = (f32[8], (f32[8], f32[8])) tuple(a, k)
}
"""


def reads(text):
    """By name: what each operation that computes reads, what has another's value, and what runs in which kernel."""
    graph = read_hlo(text)
    flow = unfused_dataflow(graph)
    names = list(graph.names)
    operands = {
        names[at]: [names[of] for of in flow.operand[flow.start[at] : flow.start[at + 1]]]
        for at in np.flatnonzero(flow.real)
    }
    plumbing = np.flatnonzero(~flow.real).tolist()
    assert all(flow.start[at] == flow.start[at + 1] for at in plumbing)  # they have no operands of their own
    passed = {names[at]: names[flow.source[at]] for at in plumbing}
    assert all(flow.source[at] == at for at in np.flatnonzero(flow.real))
    kernels = {name: names[kernel] for name, kernel in zip(names, flow.kernel.tolist(), strict=True) if kernel >= 0}
    return operands, passed, kernels


def test_what_computes_reads_what_computes():
    operands, passed, kernels = reads(PAIR)
    assert operands == {
        "i.r": ["o.s", "y"],  # the second operand of the fusion first
        "o.s": ["x"],
        "o.c": ["i.r"],
        "x": [],
        "y": [],
        "n": ["o.c"],
        "a": ["y", "n"],
        "out": ["a", "o.t"],
    }
    assert passed == {
        "i.p": "o.s", "i.q": "y", "o.p": "x", "o.q": "y", "o.k": "i.r", "o.t": "o.t", "k": "o.t",
        "first": "o.c", "second": "y",
    }  # fmt: skip
    inside = {"i.p": "o.k", "i.q": "o.k", "i.r": "o.k"}
    assert kernels == {**inside, **dict.fromkeys(("o.p", "o.q", "o.s", "o.k", "o.c", "o.t"), "k")}


BROKEN = """HloModule m
inner {
  p = f32[8] parameter(0)
  q = f32[8] parameter(NUMBER)
  s = f32[8] sine(p)
  ROOT r = f32[8] add(s, q)
}
ENTRY main {
  x = f32[8] parameter(0)
  k = f32[8] fusion(x), kind=kLoop, calls=inner
  ROOT n = f32[8] negate(k)
}
"""


@pytest.mark.parametrize("number", [1, 2, 7])
def test_a_parameter_that_nobody_gives_computes_for_all_that_is_known(number):
    operands, passed, _ = reads(BROKEN.replace("NUMBER", str(number)))
    assert operands == {"q": [], "s": ["x"], "r": ["s", "q"], "x": [], "n": ["r"]}
    assert passed == {"p": "x", "k": "r"}


@pytest.mark.parametrize("index", [2, 5])
def test_an_element_that_a_kernels_tuple_lacks_is_for_itself(index):
    operands, passed, _ = reads(PAIR.replace("index=1", f"index={index}"))
    assert operands["second"] == ["o.t"]
    assert operands["a"] == ["second", "n"]
    assert passed["first"] == "o.c"


def test_an_element_of_an_argument_is_for_itself():
    text = """HloModule m
ENTRY main {
  x = (f32[8], f32[8]) parameter(0)
  first = f32[8] get-tuple-element(x), index=0
  ROOT n = f32[8] negate(first)
}
"""
    assert reads(text) == ({"x": [], "first": ["x"], "n": ["first"]}, {}, {})


def test_where_no_instruction_is_the_root_the_first_one_that_is_read_stands_for_the_kernel():
    _, passed, _ = reads(BROKEN.replace("NUMBER", "1").replace("ROOT r", "r"))
    assert passed["k"] in ("x", "p", "r")
