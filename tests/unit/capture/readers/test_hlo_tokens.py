"""Where words, types and values of HLO end, as XLA's lexer (xla/hlo/parser/hlo_lexer.cc) tells them apart."""

import pytest

from explorer.capture.readers.hlo_tokens import NotUnderstoodError, Scanner, plain_type, without_noise
from explorer.capture.readers.hlo_whole import is_whole
from explorer.capture.readers.hlo_written import element_types


@pytest.mark.parametrize(
    ("text", "rest"),
    [("  x", "x"), ("// a\nx", "x"), ("/* a * / */x", "x"), ("/**//*b*/ x", "x"), ("x ", "x "), ("/ x", "/ x")],
)
def test_white_space_and_comments_are_skipped(text, rest):
    assert text[Scanner(text).skip(0) :] == rest


@pytest.mark.parametrize(
    ("text", "type_"),
    [
        ("f32[2,3] add(x)", "f32[2,3]"),
        ("f32[2,3]{1,0} add(x)", "f32[2,3]{1,0}"),
        ("f32[2,3] {1, 0} add(x)", "f32[2,3] {1, 0}"),
        ("f32[2]{0:T(256)S(1)} add(x)", "f32[2]{0:T(256)S(1)}"),
        ("f32[] {:T(8)} x", "f32[] {:T(8)}"),
        ("f32[2] {\n x = f32[] add()", "f32[2]"),  # that brace opens a computation
        ("f32[2] { x", "f32[2]"),
        ("(f32[2]{0}, (s32[], pred[])) tuple(x)", "(f32[2]{0}, (s32[], pred[]))"),
        ("b(f32[2]) x", "b(f32[2])"),
        ("f32 [2] x", "f32 [2]"),
        ("add(x)", ""),
        ("x", ""),
        ("", ""),
    ],
)
def test_where_a_type_ends(text, type_):
    assert text[: Scanner(text).type_end(0)] == type_


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1, b=2", "1"),
        ("{0,1}, b=2", "{0,1}"),
        ('"a, b", c=1', '"a, b"'),
        ("'a, b', c=1", "'a, b'"),
        ("[2,4] <= [8], b=2", "[2,4] <= [8]"),
        ("[2,4]<=[4,2]T(1,0), b=2", "[2,4]<=[4,2]T(1,0)"),
        ("[2,4] <= [4,2] T(1,0), b=2", "[2,4] <= [4,2] T(1,0)"),
        ("[2,4] <= [4,2] T (1,0)\n", "[2,4] <= [4,2] T (1,0)"),
        ("[2,4]<=[8]\n  T = f32[] add(a, b)", "[2,4]<=[8]"),
        ("f32[2] {1, 2}, b", "f32[2] {1, 2}"),
        ("f32[2] y = f32[] add(x)", "f32[2]"),
        ("1 -2, b", "1 -2"),
        ("b01f_01io->b01f, c", "b01f_01io->b01f"),
        ("{1} true, c", "{1} true"),
        ("{1} true = f32[]", "{1}"),
        ("%add\n", "%add"),
    ],
)
def test_where_an_attributes_value_ends(text, value):
    assert text[: Scanner(text).value_end(0)] == value


@pytest.mark.parametrize("text", ["", ", b", ")", '"open', "{1, 2", "(", " x"])
def test_what_is_no_value_or_has_no_end_is_not_understood(text):
    with pytest.raises(NotUnderstoodError):
        Scanner(text).value_end(0)


@pytest.mark.parametrize(
    ("text", "inside"),
    [
        ("(a(b)[c]{d})e", "(a(b)[c]{d})"),
        ('(")")x', '(")")'),
        ("(/* ) */)x", "(/* ) */)"),
        ("(// )\n)x", "(// )\n)"),
        ("(')')x", "(')')"),
        ("(a\nb)x", "(a\nb)"),
    ],
)
def test_brackets_in_strings_and_comments_close_nothing(text, inside):
    assert text[: Scanner(text).closing(0) + 1] == inside


@pytest.mark.parametrize(
    "text", ["(a", '(a "b)', "(a /* b)", "(a\n  x = f32[2] add(y))", "(a\n  ROOT x)", "(a\n%x = add(y))"]
)
def test_a_bracket_does_not_reach_into_the_next_instruction(text):
    with pytest.raises(NotUnderstoodError) as refused:
        Scanner(text).closing(0)
    assert refused.value.at == 0


def test_after_much_was_read_in_vain_a_bracket_may_reach_two_thousand_characters():
    text = "(" * 40 + "x" * 1_000
    scanner = Scanner(text)
    for at in range(40):
        with pytest.raises(NotUnderstoodError):
            scanner.closing(at)
    near, far = "(" + "x" * 1_998 + ")", "(" + "x" * 1_999 + ")"
    scanner.text = near
    assert scanner.closing(0) == 1_999
    scanner.text = far
    with pytest.raises(NotUnderstoodError):
        scanner.closing(0)


def test_a_word_that_must_come_next():
    scanner = Scanner("  -> f32[]")
    assert scanner.expect("->", 0) == 4
    with pytest.raises(NotUnderstoodError):
        scanner.expect("(", 0)
    assert Scanner("%add.1: x").name(0) == ("add.1", 7)
    with pytest.raises(NotUnderstoodError):
        Scanner("(").name(0)


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("{0,1}", "{0,1}"),
        ("{0,\n  1}", "{0, 1}"),
        ("{0, /* x */1}", "{0, 1}"),
        ("{0, // x\n 1}", "{0,  1}"),
        ("'a'", '"a"'),
        ("'a\"b'", "'a\"b'"),
        ('"a  //  b" x  y', '"a  //  b" x y'),
        ('"it\'s"', '"it\'s"'),
        ("a= b", "a=b"),
        ("a\tb", "a b"),
    ],
)
def test_a_text_as_xla_would_print_it(text, printed):
    assert without_noise(text) == printed


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("f32[2,3]{1,0}", "f32[2,3]{1,0}"),
        ("f32[2, 3] {1, 0}", "f32[2,3]{1,0}"),
        ("( f32[2],s32[] )", "(f32[2], s32[])"),
        ("(f32[2],\n(s32[],/*1*/pred[]))", "(f32[2], (s32[], pred[]))"),
    ],
)
def test_a_type_as_xla_would_print_it(text, printed):
    assert plain_type(text) == printed


@pytest.mark.parametrize(
    ("text", "types"),
    [
        ("(f32[2,3]{1,0}, s32[])", ["f32[2,3]{1,0}", "s32[]"]),
        ("((f32[], s32[]), pred[])", ["(f32[], s32[])", "pred[]"]),
        ("(f32[])", ["f32[]"]),
    ],
)
def test_the_types_in_a_tuples(text, types):
    assert element_types(text) == types


@pytest.mark.parametrize(
    ("attributes", "whole"),
    [
        ("", True),
        (", a=1, b={0,1}, to_apply=%add", True),
        (', s="x, {", m={op_name="a(" b=1}', True),
        (", g=[2,4]<=[4,2]T(1,0)", True),
        (", a={{{{{1}}}}}", True),
        (", a=1 ", False),
        (" x", False),
        (", a=", False),
        (", a={1", False),
        (", to_apply={ ROOT %x = f32[] add()}", False),
        (", to_apply={ x = f32[] add(y) }", False),
        (", branch_computations={%a, %b}", True),
        (", branch_computations={%a, /*index=1*/%b}", True),
        (", branch_computations={%a, {%b}}", False),
    ],
)
def test_a_pattern_takes_only_what_is_attributes_alone(attributes, whole):
    assert is_whole(attributes) is whole
