"""What the proof knows of operators, conditions, containers and parameters: values by hand, the answer as text."""

import ast
from types import SimpleNamespace

import jax.numpy as jnp
import numpy as np
import pytest

from explorer.hotpath.proof.attributes import elements, item, truth, values_in
from explorer.hotpath.proof.calls import container_method as method
from explorer.hotpath.proof.expressions import binary, comparison, may_change_in_place, unary
from explorer.hotpath.proof.values import (
    BUFFER,
    DATA,
    NONE,
    PLAIN,
    Arguments,
    Buffer,
    Data,
    Either,
    Fresh,
    Given,
    Items,
    Known,
    Made,
    NotProven,
    Plain,
    Reads,
    TooManyValues,
    join,
    parameters,
)

LIST, OTHER = [1], [1]  # equal, and not the same


class Own:
    """A class of the user's."""


def text(value):
    match value:
        case None:
            return "nothing"
        case Data() | Plain() | Buffer():
            return type(value).__name__.lower()
        case Known(held):
            return repr(held)
        case Given(example):
            return f"given {example!r}"
        case Items(items):
            return f"({', '.join(map(text, items))})"
        case Either(values):
            return " | ".join(map(text, values))
        case Fresh(kind, holds):
            return f"{kind.__name__} of {text(holds)}"
    return "something else"


def put(owner, value, name):
    """As the walker does: into what the call itself made."""
    if not isinstance(owner, Fresh):
        raise NotProven(f"`{name}` changes what isn't the call's own")
    owner.add(value)


@pytest.fixture
def walker():
    return SimpleNamespace(reads=Reads(), in_error=False, put=put)


def K(value):
    return Known(value)


def T(*items):
    return Items(items)


JOINED = [
    (DATA, K(3), "data"),
    (K(3), K(3), "3"),
    (K(3), K(3.0), "plain"),  # a trace would have the type of the one
    (K(True), K(1), "plain"),
    (K(3), PLAIN, "plain"),
    (K("a"), K("b"), "plain"),
    (NONE, NONE, "None"),
    (NONE, K(3), "3 | None"),
    (Either((NONE, K(3))), K(4), "plain | None"),
    (NONE, DATA, "data | None"),
    (BUFFER, DATA, "data | buffer"),
    (BUFFER, BUFFER, "buffer"),
    (K(LIST), K(LIST), "[1]"),
    (K(LIST), K(OTHER), "[1] | [1]"),
    (Given(LIST), Given(LIST), "given [1]"),
    (Given(LIST), Given(OTHER), "given [1] | given [1]"),
    (T(K(1), DATA), T(K(1), DATA), "(1, data)"),
    (T(K(1)), T(K(2)), "(1) | (2)"),
    (T(K(1)), T(K(1), K(1)), "(1) | (1, 1)"),
    (Fresh(list), Fresh(list), "list of nothing | list of nothing"),
]


@pytest.mark.parametrize(("first", "second", "wanted"), JOINED)
def test_one_of_two_values_is_what_is_known_of_both(first, second, wanted):
    assert text(join(first, second)) == wanted


def test_more_than_eight_values_are_too_many_to_follow():
    eight = Either(tuple(K([number]) for number in range(8)))
    assert len(join(eight, eight.values[3]).values) == 8
    with pytest.raises(TooManyValues):
        join(eight, K([8]))


BINARY = [
    (ast.Add, K(2), K(3), "5"),
    (ast.Sub, K(2), K(3), "-1"),
    (ast.Mult, K(2), K(3), "6"),
    (ast.Div, K(2), K(4), "0.5"),
    (ast.FloorDiv, K(7), K(2), "3"),
    (ast.Mod, K(7), K(4), "3"),
    (ast.Pow, K(2), K(3), "plain"),
    (ast.Div, K(2), K(0), "plain"),  # which raises when it runs
    (ast.Add, K(10**9), K(1), "1000000001"),
    (ast.Add, K(10**9 + 1), K(1), "plain"),
    (ast.Sub, K(-(10**9) - 1), K(1), "plain"),
    (ast.Add, K("a"), K("b"), "'ab'"),
    (ast.Mult, K("a"), K(3), "plain"),
    (ast.Mod, K("%d"), K(3), "plain"),
    (ast.Add, PLAIN, K(3), "plain"),
    (ast.Add, DATA, K(3), "data"),
    (ast.Mult, K(3), DATA, "data"),
    (ast.Mod, DATA, K(3), "data"),
    (ast.Add, BUFFER, BUFFER, "data"),
    (ast.Add, T(K(1)), T(DATA), "(1, data)"),
    (ast.Add, Fresh(list, PLAIN), Fresh(list, DATA), "list of data"),
    (ast.Add, Fresh(list), Fresh(list), "list of nothing"),
    (ast.Add, Given([1]), Given([2]), "list of plain"),
    (ast.Add, Given([1]), T(K(1)), "list of 1"),
    (ast.Mult, T(K(1), K(1)), K(2), "list of 1"),
    (ast.Mult, Fresh(list, DATA), PLAIN, "list of data"),
    (ast.Add, Either((K(1), K(2))), K(3), "plain"),
    (ast.Add, K(3), Either((K(1), NONE)), "data"),
    (ast.Add, Either((DATA, NONE)), DATA, "data"),
]


@pytest.mark.parametrize(("op", "left", "right", "wanted"), BINARY)
def test_an_operator_of_two_values_gives(op, left, right, wanted, walker):
    assert text(binary(op(), left, right, walker)) == wanted


UNARY = [
    (ast.USub, K(3), "-3"),
    (ast.UAdd, K(True), "1"),
    (ast.Invert, K(3), "plain"),
    (ast.USub, DATA, "data"),
    (ast.Not, K(0), "True"),
    (ast.Not, K("a"), "plain"),
    (ast.Not, T(), "True"),
    (ast.Not, T(DATA), "False"),
    (ast.Not, DATA, "data"),
    (ast.Not, Fresh(list), "plain"),
    (ast.Not, Either((T(), NONE)), "True"),
]


@pytest.mark.parametrize(("op", "operand", "wanted"), UNARY)
def test_an_operator_of_one_value_gives(op, operand, wanted, walker):
    assert text(unary(op(), operand, walker)) == wanted


COMPARED = [
    (ast.Lt, K(2), K(3), "True"),
    (ast.Lt, K(3), K(3), "False"),
    (ast.LtE, K(3), K(3), "True"),
    (ast.Gt, K(3), K(3), "False"),
    (ast.GtE, K(3), K(3), "True"),
    (ast.Eq, K("a"), K("a"), "True"),
    (ast.NotEq, K("a"), K("a"), "False"),
    (ast.Lt, K("a"), K("b"), "plain"),
    (ast.Lt, DATA, K(3), "data"),
    (ast.Eq, K((1, 2)), K((1, 2)), "plain"),
    (ast.Eq, T(K(1)), PLAIN, "plain"),
    (ast.Is, NONE, NONE, "True"),
    (ast.IsNot, NONE, NONE, "False"),
    (ast.Is, DATA, NONE, "False"),
    (ast.IsNot, NONE, DATA, "True"),
    (ast.Is, Either((DATA, NONE)), NONE, "plain"),
    (ast.Is, PLAIN, NONE, "plain"),
    (ast.Is, K(True), K(True), "True"),
    (ast.Is, K(int), K(float), "False"),
    (ast.In, K("a"), K({"a": 1}), "True"),
    (ast.NotIn, K("a"), K({"a": 1}), "False"),
    (ast.In, K("b"), K({"a": 1}), "False"),
    (ast.In, K("a"), K("abc"), "plain"),
    (ast.In, K("a"), K(["a", "b"]), "True"),
    (ast.In, K("c"), K(("a", "b")), "False"),
    (ast.In, K("a"), K({"a"}), "True"),
    (ast.In, K("c"), K(["b", 1]), "plain"),
    (ast.In, K("a"), K(range(3)), "plain"),
    (ast.In, K("a"), Given({"a": 1}), "True"),
    (ast.NotIn, K("a"), Given(["b"]), "True"),
    (ast.In, K(1), K([1]), "plain"),
    (ast.In, PLAIN, K(["a"]), "plain"),
]


@pytest.mark.parametrize(("op", "left", "right", "wanted"), COMPARED)
def test_a_comparison_gives(op, left, right, wanted, walker):
    assert text(comparison(op(), left, right, walker)) == wanted


REFUSED = {
    "an array in a text": (
        lambda w: binary(ast.Mod(), K("%s"), DATA, w),
        "it formats an array's value as text, and a trace has no values"),
    "arithmetic of the user's": (
        lambda w: binary(ast.FloorDiv(), DATA, K(Own()), w),
        "the effects of arithmetic with an object of `Own` are unknown"),
    "equality of the user's": (
        lambda w: comparison(ast.Eq(), K(Own()), K(3), w),
        "the effects of arithmetic with an object of `Own` are unknown"),
    "the same number": (
        lambda w: comparison(ast.Is(), K(3), K(3), w),
        "it compares the identity of two objects, which differs in a trace"),
    "an array among others": (
        lambda w: comparison(ast.In(), DATA, K([1]), w), "it looks for an array among others, which reads its value"),
    "among arrays": (
        lambda w: comparison(ast.In(), K(1), K([jnp.ones(2)]), w),
        "it looks for something among arrays, which reads their values"),
    "in an object of the user's": (
        lambda w: comparison(ast.In(), K(1), Made(Own), w), "the container after `in` is unknown"),
    "a decision by an array": (lambda w: truth(K(jnp.ones(2)), w), "it branches on the value of an array"),
    "a loop over a number": (lambda w: elements(K(3), w), "the items of a loop over an object of `int` are unknown"),
    "a loop over an object": (
        lambda w: elements(Made(Own), w), "the items of a loop over an object of `Own` are unknown"),
    "an item at an array's place": (
        lambda w: item(K([1]), K(jnp.ones(2)), w, "x[i]"), "`x[i]` reads the value of an array to find an item"),
    "sorted arrays": (
        lambda w: method(w, Fresh(list, DATA), "sort", Arguments(), "x.sort"), "`x.sort` compares what is in it"),
    "counted arrays": (
        lambda w: method(w, Fresh(list, DATA), "count", Arguments((DATA,)), "x.count"),
        "the effects of `x.count` are unknown"),
    "a buffer written to": (
        lambda w: method(w, BUFFER, "sum", Arguments((), {"out": BUFFER}), "x.sum"),
        "`x.sum` may change a NumPy array"),
    "too many arguments": (
        lambda w: parameters(ast.parse("lambda a: 0").body[0].value, {}, Arguments((DATA, DATA)), "f"),
        "`f` is called with more arguments than it takes"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_a_trace_would_do_otherwise_is_not_proven(name, walker):
    run, reason = REFUSED[name]
    with pytest.raises(NotProven) as raised:
        run(walker)
    assert raised.value.args[0] == reason


TRUTHS = [
    (NONE, False), (K(0), False), (K("x"), True), (K([]), False), (K([0]), True), (K(lambda: 0), True), (K(int), True),
    (K(np), True), (K(np.dtype("f4")), None), (T(), False), (T(DATA), True), (Given([]), False),
    (Given({"a": 1}), True),
    (DATA, None), (PLAIN, None), (Either((K(1), K(2))), True), (Either((K(0), K(1))), None), (Made(Own), None),
    (K(Own()), None), (Fresh(list), None),
]  # fmt: skip


@pytest.mark.parametrize(("value", "wanted"), TRUTHS)
def test_a_condition_holds_where_guards_decide_it(value, wanted, walker):
    assert truth(value, walker) is wanted


ITEMS = [
    (T(K(1), DATA), K(1), "data"), (T(K(1), DATA), K(-2), "1"), (T(K(1), K("a")), K(-1), "'a'"),
    (T(K(1), K(1)), K(2), "1"), (T(K(1), NONE), K(-3), "1 | None"), (T(K(1), K(2)), PLAIN, "plain"),
    (Fresh(list), K(0), "data"), (Fresh(list, PLAIN), K(0), "plain"), (Given({"a": 3}), K("a"), "3"),
    (Given({"a": 3}), K("b"), "data"), (Given({"a": 3, "b": 3}), PLAIN, "3"), (Given([]), PLAIN, "data"),
    (Given([1, 2]), K(1), "2"), (Given([[1]]), K(0), "given [1]"), (K([5, 6]), K(1), "6"), (K([5, 6]), K(2), "data"),
    (K([5, 6]), PLAIN, "plain"), (K("abc"), K(0), "plain"), (DATA, K(0), "data"), (BUFFER, K(0), "buffer"),
    (Either((NONE, Given([1]))), K(0), "1"),
]  # fmt: skip


@pytest.mark.parametrize(("owner", "key", "wanted"), ITEMS)
def test_an_item_is(owner, key, wanted, walker):
    assert text(item(owner, key, walker, "x[i]")) == wanted


#           value                                 a loop over it   its values
CONTENTS = [
    (T(), "nothing", "nothing"),
    (T(K(1), K(1)), "1", "1"),
    (Fresh(dict, DATA), "plain", "data"),
    (Fresh(dict), "nothing", "nothing"),
    (Fresh(list, DATA), "data", "data"),
    (Given({"a": 1}), "plain", "1"),
    (Given({}), "nothing", "nothing"),
    (Given([1, 1]), "1", "1"),
    (Given([]), "nothing", "nothing"),
    (K({"a": 2}), "'a'", "2"),
    (K({}), "nothing", "nothing"),
    (K("ab"), "plain", "plain"),
    (K(range(3)), "plain", "plain"),
    (K([1]), "1", "1"),
    (K([]), "nothing", "nothing"),
    (Either((T(), T(DATA))), "data", "data"),
    (Either((T(), T())), "nothing", "nothing"),
    (DATA, "data", "data"),
]


@pytest.mark.parametrize(("value", "loop", "values"), CONTENTS)
def test_a_loop_over_a_value_gives_and_its_values_are(value, loop, values, walker):
    assert (text(elements(value, walker)), text(values_in(value, walker))) == (loop, values)


#             owner              method       arguments                   gives          the owner then
METHODS = [
    (lambda: Fresh(list), "append", (DATA,), "data", "list of data"),
    (lambda: Fresh(list, PLAIN), "pop", (), "plain", "list of plain"),
    (lambda: Fresh(dict, PLAIN), "pop", (K("a"), DATA), "data", "dict of plain"),
    (lambda: Fresh(list), "insert", (K(0), DATA), "data", "list of data"),
    (lambda: Fresh(dict, K(1)), "setdefault", (K("a"), K(1)), "1", "dict of 1"),
    (lambda: Fresh(dict), "update", (Given({"a": 1}),), "1", "dict of 1"),
    (lambda: Fresh(list), "extend", (T(K(1), K(1)),), "1", "list of 1"),
    (lambda: Fresh(list, PLAIN), "sort", (), "plain", "list of plain"),
    (lambda: Given({"a": 1}), "get", (K("a"),), "1", "given {'a': 1}"),
    (lambda: Given({"a": 1}), "get", (K("b"),), "None", "given {'a': 1}"),
    (lambda: Given({"a": 1}), "get", (K("b"), K(7)), "7", "given {'a': 1}"),
    (lambda: Given({"a": 1}), "get", (PLAIN,), "1 | None", "given {'a': 1}"),
    (lambda: K({"a": 1}), "get", (K("b"), K(7)), "7", "{'a': 1}"),
    (lambda: Given({"a": 1}), "items", (), "list of (plain, 1)", "given {'a': 1}"),
    (lambda: K({"a": 1}), "values", (), "list of 1", "{'a': 1}"),
    (lambda: K({"a": 1}), "keys", (), "list of plain", "{'a': 1}"),
    (lambda: Fresh(set, PLAIN), "copy", (), "set of plain", "set of plain"),
    (lambda: Given([1]), "copy", (), "list of 1", "given [1]"),
    (lambda: T(K(1)), "index", (K(1),), "plain", "(1)"),
    (lambda: Fresh(np.ndarray, DATA), "sum", (), "data", "ndarray of data"),
    (lambda: BUFFER, "sum", (), "buffer", "buffer"),
]  # fmt: skip


@pytest.mark.parametrize(("make", "name", "arguments", "wanted", "after"), METHODS)
def test_a_method_of_a_container_gives_and_leaves(make, name, arguments, wanted, after, walker):
    owner = make()
    given = method(walker, owner, name, Arguments(arguments), f"x.{name}")
    assert (text(given), text(owner)) == (wanted, after)


DEFAULTS = {"b": K(2), "d": K(4)}
#   arguments                                                       a, b, c, d, e
BOUND = [
    (Arguments((K(1), K(3), K(5)), {"d": K(6), "z": K(7)}), "1, 3, (5), 6, dict of 7"),
    (Arguments((K(1),)), "1, 2, (), 4, dict of nothing"),
    (Arguments((), {"b": K(3), "a": K(1)}), "1, 3, (), 4, dict of nothing"),
    (Arguments((K(1),), rest=DATA), "1, data, tuple of data, 4, dict of nothing"),
    (Arguments((K(1), K(3), K(5)), rest=NONE), "1, 3, tuple of 5 | None, 4, dict of nothing"),
    (Arguments((), {"a": K(1)}, others=DATA), "1, data, (), data, dict of data"),
    (Arguments((K(1),), {"d": K(6), "z": K(7)}, others=NONE), "1 | None, 2 | None, (), 6, dict of 7 | None"),
]


@pytest.mark.parametrize(("given", "wanted"), BOUND)
def test_arguments_become_parameters_as_python_binds_them(given, wanted):
    node = ast.parse("lambda a, /, b=2, *c, d=4, **e: 0").body[0].value
    node.args.posonlyargs, node.args.args = [], [*node.args.posonlyargs, *node.args.args]
    values = parameters(node, DEFAULTS, given, "f")
    assert ", ".join(text(values[name]) for name in "abcde") == wanted


def test_arguments_are_exact_where_no_star_spreads_any():
    given = Arguments((K(1),), {"d": K(2)})
    assert given.are_exact
    assert not Arguments(rest=DATA).are_exact
    assert not Arguments(others=DATA).are_exact
    more = Arguments((K(1),), {"d": K(2)}, DATA, PLAIN)
    assert [text(one) for one in more.all] == ["1", "2", "data", "plain"]
    after = given.after([K(0)], {"d": K(5), "e": K(6)})
    assert [text(one) for one in after.positional] == ["0", "1"]
    assert {name: text(one) for name, one in after.named.items()} == {"d": "2", "e": "6"}


@pytest.mark.parametrize(
    ("value", "may"),
    [
        (K([1]), True), (Given({}), True), (K(np.ones(2)), True), (BUFFER, True), (Made(Own), True),
        (Fresh(list), True),
        (Fresh(np.ndarray), False), (DATA, False), (K(3), False), (T(), False), (Either((DATA, K([1]))), True),
        (Either((DATA, PLAIN)), False),
    ],
)  # fmt: skip
def test_what_may_change_in_place_is_a_container_or_an_object(value, may):
    assert may_change_in_place(value) is may
