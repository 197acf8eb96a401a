"""Two modules written by hand held against each other: the text of the one in the names of the other, to the letter."""

import re

import pytest

import explorer as ex
from explorer.analysis.diff.diff import Value


def named(text):
    """With the sign before each name that XLA prints there, which is left out in these tests."""
    names = re.findall(r"^ *(?:ROOT )?(\S+) (?:=|{)", text, re.MULTILINE)
    for name in sorted(set(names) - {"ENTRY"}, key=len):
        text = re.sub(
            rf"(?<![\w.%=/]){re.escape(name)}(?![\w.(=])|(?<=calls=){re.escape(name)}(?![\w.])", f"%{name}", text
        )
    return f"HloModule m\n{text}"


def diff(one, other):
    return ex.diff(*(ex.open_hlo(named(text)) for text in (one, other)))


def entry(*lines):
    return "ENTRY main {\n" + "".join(f"  {line}\n" for line in lines) + "}\n"


def pairs(stage):
    return {old.name: new.name for old, new in stage.pairs}


def at(line, function="f"):
    return f', metadata={{op_name="jit(f)/op" source_file="a.py" source_line={line}}}'


PLAIN = entry("x.1 = f32[8] parameter(0)", "s.1 = f32[8] sine(x.1)", "ROOT n.1 = f32[8] negate(s.1)")


def test_other_names_are_no_difference():
    same = diff(PLAIN, PLAIN.replace(".1", ".7"))
    assert [value.name for value in same.values] == ["signature"]  # of arguments it has the names
    assert same.stages["hlo"].is_empty
    assert pairs(same.hlo) == {"x.1": "x.7", "s.1": "s.7", "n.1": "n.7"}
    assert same.hlo.text() == ""


def test_what_is_only_in_one_of_them_is_said_in_the_names_of_the_first():
    more = entry(
        "x.1 = f32[8] parameter(0)",
        "s.1 = f32[8] cosine(x.1)",
        "s.9 = f32[8] sine(s.1)",
        "ROOT n.9 = f32[8] negate(s.9)",
    )
    change = diff(PLAIN, more)
    stage = change.hlo
    assert pairs(stage) == {"x.1": "x.1", "s.1": "s.9", "n.1": "n.9"}
    assert [node.name for node in stage.only_in_b] == ["s.1"]
    assert stage.only_in_a == ()
    assert stage.name_of(stage.only_in_b[0]) == "s.1′"
    lines = [line for line in stage.text(0).splitlines() if line[:1] in "+-" and line[:3] not in ("+++", "---")]
    assert lines == ["-  %s.1 = f32[8] sine(%x.1)", "+  %s.1′ = f32[8] cosine(%x.1)", "+  %s.1 = f32[8] sine(%s.1′)"]
    assert repr(stage) == "StageDiff(hlo: +1 ~1, of 3 and 4)"


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        # Of two alike, which one is which is seen by who reads it.
        (
            entry("x = f32[8] parameter(0)", "a = f32[8] sine(x)", "b = f32[8] sine(x)", "c = f32[8] negate(a)",
                  "ROOT d = f32[8] subtract(c, b)"),
            entry("x = f32[8] parameter(0)", "b2 = f32[8] sine(x)", "a2 = f32[8] sine(x)", "c2 = f32[8] negate(a2)",
                  "ROOT d2 = f32[8] subtract(c2, b2)"),
            {"x": "x", "a": "a2", "b": "b2", "c": "c2", "d": "d2"},
        ),
        # By their place among what it reads.
        (
            entry("x = f32[8] parameter(0)", "a = f32[8] sine(x)", "b = f32[8] sine(x)",
                  "ROOT d = f32[8] subtract(a, b)"),
            entry("x = f32[8] parameter(0)", "b2 = f32[8] sine(x)", "a2 = f32[8] sine(x)",
                  "ROOT d2 = f32[8] subtract(a2, b2)"),
            {"x": "x", "a": "a2", "b": "b2", "d": "d2"},
        ),
        # By their line.
        (
            entry("x = f32[8] parameter(0)", f"a = f32[8] sine(x){at(3)}", f"b = f32[8] sine(x){at(4)}",
                  "ROOT d = (f32[8], f32[8]) tuple(a, b)"),
            entry("x = f32[8] parameter(0)", f"b2 = f32[8] sine(x){at(4)}", f"a2 = f32[8] sine(x){at(3)}",
                  "ROOT d2 = (f32[8], f32[8]) tuple(b2, a2)"),
            {"x": "x", "a": "a2", "b": "b2", "d": "d2"},
        ),
        # By their shape.
        (
            entry("x = f32[8] parameter(0)", "y = f32[9] parameter(1)", "a = f32[8] sine(x)", "b = f32[9] sine(y)",
                  "ROOT d = (f32[8], f32[9]) tuple(a, b)"),
            entry("y2 = f32[9] parameter(0)", "x2 = f32[8] parameter(1)", "b2 = f32[9] sine(y2)",
                  "a2 = f32[8] sine(x2)", "ROOT d2 = (f32[9], f32[8]) tuple(b2, a2)"),
            {"x": "x2", "y": "y2", "a": "a2", "b": "b2", "d": "d2"},
        ),
        # Every size may be another one.
        (PLAIN, PLAIN.replace("[8]", "[16]").replace(".1", ".2"), {"x.1": "x.2", "s.1": "s.2", "n.1": "n.2"}),
        # Of nothing that is alike nothing is the same.
        (entry("ROOT x = f32[8] parameter(0)"), entry("ROOT c = f32[8] iota(), iota_dimension=0"), {}),
    ],
)  # fmt: skip
def test_which_is_which(one, other, expected):
    assert pairs(diff(one, other).hlo) == expected
    assert pairs(diff(other, one).hlo) == {new: old for old, new in expected.items()}


def fused(*kernels):
    """A module of fusions in a row: of each its name and the operations that it holds."""
    text, last, rows = "", "x", ["x = f32[8] parameter(0)"]
    for name, ops in kernels:
        body = [f"p.{name} = f32[8] parameter(0)"]
        before = f"p.{name}"
        for number, op in enumerate(ops):
            root = "ROOT " * (number == len(ops) - 1)
            body.append(f"{root}{name}.{number} = f32[8] {op}({before}){at(number + 3)}")
            before = f"{name}.{number}"
        text += f"c.{name} {{\n" + "".join(f"  {line}\n" for line in body) + "}\n"
        rows.append(f"{name} = f32[8] fusion({last}), kind=kLoop, calls=c.{name}")
        last = name
    rows[-1] = f"ROOT {rows[-1]}"
    return text + entry(*rows)


def test_kernels_are_named_by_what_they_hold():
    one = fused(("k", ["sine", "negate"]), ("m", ["tanh"]))
    other = fused(("k", ["sine", "negate", "negate", "cosine"]), ("m", ["tanh"]), ("n", ["floor", "ceil", "floor"]))
    change = diff(one, other)
    assert [fusion.holds for fusion in change.fusions_gained] == ["2 floor, ceil"]
    assert change.fusions_lost == ()
    ((old, new),) = change.fusions_changed
    assert (old.holds, new.holds) == ("negate, sine", "2 negate, cosine, sine")
    assert (old.name, old.instructions, old.lines) == ("k", 3, (":3", ":4"))
    assert repr(change.fusions_gained[0]) == "Fusion(n: 2 floor, ceil from :3, :4, :5)"
    rows = [line.strip() for line in repr(change).splitlines()]
    assert "fusion gained   n: 2 floor, ceil from :3, :4, :5" in rows
    assert "fusion changed  k: negate, sine → 2 negate, cosine, sine" in rows
    back = diff(other, one)
    assert [fusion.name for fusion in back.fusions_lost] == ["n"]


@pytest.mark.parametrize(
    ("ops", "holds"),
    [
        (["sine", "cosine", "tanh", "negate"], "cosine, negate, sine, tanh"),
        (["sine", "cosine", "tanh", "negate", "floor"], "cosine, floor, negate, sine and 1 other"),
        (["sine", "cosine", "tanh", "negate", "floor", "ceil"], "ceil, cosine, floor, negate and 2 others"),
        (["bitcast"], "bitcast, parameter"),  # nothing else is in it
    ],
)
def test_of_what_a_kernel_holds_four_kinds_are_named(ops, holds):
    (fusion,) = diff(PLAIN.replace("sine", "exponential"), fused(("k", ops))).fusions_gained
    assert fusion.holds == holds


def test_of_many_kinds_of_kernels_eight_are_listed_and_the_others_counted():
    names = ["sine", "cosine", "tanh", "negate", "floor", "ceil", "abs", "sign", "sqrt", "rsqrt"]
    other = fused(*((f"k{at}", [op]) for at, op in enumerate([*names, "sine", "rsqrt", "rsqrt"])))
    rows = [line.strip() for line in repr(diff(entry("ROOT x = f32[8] parameter(0)"), other)).splitlines()]
    gained = [row.removeprefix("fusion gained").strip() for row in rows if row.startswith("fusion gained")]
    assert gained[:3] == ["k9: rsqrt from :3 (×3)", "k0: sine from :3 (×2)", "k1: cosine from :3"]
    assert gained[-1] == "2 more of 2 kinds"
    assert len(gained) == 9


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Value("flops", "1", "2", 2.0), "1 → 2 (×2)"),
        (Value("flops", "1,000", "1,234", 1.234), "1,000 → 1,234 (×1.23)"),
        (Value("flops", "1,000", "1,006", 1.006), "1,000 → 1,006 (×1.01)"),
        (Value("flops", "1,000", "1,004", 1.004), "1,000 → 1,004"),
        (Value("flops", "1,000", "996", 0.996), "1,000 → 996"),
        (Value("flops", "2", "1", 0.5), "2 → 1 (×0.5)"),
        (Value("failure", "", "no"), "– → no"),
        (Value("failure", "no", ""), "no → –"),
    ],
)
def test_a_value_of_both_sides_is_one_text(value, text):
    assert str(value) == text


SHORT = """HloModule m

fused_computation (p: f32[8]) -> f32[8] {
  p = f32[8]{0} parameter(0)
  ROOT tanh.1 = f32[8]{0} tanh(p)
}

ENTRY main (x: f32[8]) -> f32[8] {
  x = f32[8]{0} parameter(0)
  fusion.1 = f32[8]{0} fusion(x), kind=kLoop, calls=fused_computation
  ROOT add = f32[8]{0} add(fusion.1, x)
}
"""


@pytest.mark.parametrize(
    ("name", "other"),
    [("tanh.1", "tanh.77"), ("fusion.1", "f"), ("fused_computation", "fc.3"), ("ROOT add =", "ROOT add.2 =")],
)
def test_names_are_no_difference_where_a_module_is_printed_without_the_sign_before_them(name, other):
    same = ex.diff(ex.open_hlo(SHORT), ex.open_hlo(SHORT.replace(name, other)))
    assert same.is_empty


@pytest.mark.parametrize(
    ("text", "other"),
    [("} tanh(", "} sine("), ("} add(", "} multiply("), ("add(fusion.1, x)", "add(x, fusion.1)"), ("kLoop", "kInput")],
)
def test_what_is_no_name_is_a_difference_there_too(text, other):
    assert text in SHORT
    assert not ex.diff(ex.open_hlo(SHORT), ex.open_hlo(SHORT.replace(text, other))).hlo.is_empty


def test_the_words_of_a_module_without_signs_that_are_names():
    lines = ex.open_hlo(SHORT).hlo.written_lines
    assert [line.without_names.strip() for line in lines if not line.is_end] == [
        "HloModule m",
        "· (·: f32[8]) -> f32[8] {",
        "· = f32[8]{0} parameter(0)",
        "ROOT · = f32[8]{0} tanh(·)",
        "ENTRY · (·: f32[8]) -> f32[8] {",
        "· = f32[8]{0} parameter(0)",
        "· = f32[8]{0} fusion(·), kind=kLoop, calls=·",
        "ROOT · = f32[8]{0} add(·, ·)",
    ]


@pytest.mark.parametrize(
    ("after", "sentence"),
    [
        (PLAIN, "nothing differs but times and the numbers in names"),
        (PLAIN.replace("x.1", "y.1"), "no operation differs, but signature"),
        (PLAIN.replace("sine", "cosine"), "the compiled program differs: 2 kernels as before"),
        (
            entry("x.1 = f32[8] parameter(0)", "ROOT n.1 = f32[8] negate(x.1)"),
            "the compiled program differs: 2 → 1 kernel, 0.50× the FLOPs, 0.50× the bytes moved",
        ),
    ],
)
def test_a_diff_is_one_sentence(after, sentence):
    assert diff(PLAIN, after).headline == sentence
