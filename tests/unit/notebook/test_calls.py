"""What a person writes behind a magic, taken apart: options, the call with its place, and what is refused and how."""

import ast
import inspect
import linecache

import pytest

from explorer.errors import ExpressionError
from explorer.notebook.shell import (
    CALLEE,
    assigns,
    last_call,
    redirect,
    single_call,
    split_options,
    typed_column,
    users_traceback,
)


@pytest.mark.parametrize(
    ("line", "words", "rest"),
    [
        ("", [], ""),
        ("f(x)", [], "f(x)"),
        ("  f(x)  ", [], "f(x)"),
        ("--save a.bin f(x)", ["--save", "a.bin"], "f(x)"),
        ("--save=a.bin f(x)", ["--save", "a.bin"], "f(x)"),
        ("--save 'a b' f(x, '--no')", ["--save", "a b"], "f(x, '--no')"),
        ('--save "a b" --html c f()', ["--save", "a b", "--html", "c"], "f()"),
        ("--passes f(x)", ["--passes"], "f(x)"),  # takes no value
        ("--passes --save a f(x)", ["--passes", "--save", "a"], "f(x)"),
        ("--save a --passes", ["--save", "a", "--passes"], ""),
        ("--passes=1 f(x)", ["--passes", "1"], "f(x)"),
        ("--help", ["--help"], ""),
        ("f(--x)", [], "f(--x)"),
    ],
)
def test_options_are_cut_from_the_call_behind_them(line, words, rest):
    assert split_options(line) == (words, rest)


def test_other_magics_have_other_flags():
    assert split_options("--fix --passes f(x)", ("--fix",)) == (["--fix", "--passes", "f(x)"], "")


def test_the_call_stands_where_it_was_typed():
    statement = single_call("f(\n  x, y=g(1))", 7, 10)
    places = {
        ast.unparse(node): (node.lineno, node.col_offset, node.end_lineno, node.end_col_offset)
        for node in ast.walk(statement)
        if isinstance(node, ast.expr | ast.keyword)
    }
    assert places["f(x, y=g(1))"] == (7, 10, 8, 22)
    assert places["x"] == (8, 12, 8, 13)
    assert places["y=g(1)"] == (8, 15, 8, 21)
    assert places["1"] == (8, 19, 8, 20)
    assert (statement.lineno, statement.col_offset) == (7, 10)


COMPILED = "write the call as ever, %explore f(x, y=1); it is compiled instead of run"
AGAIN = "write the call as ever, %jtime f(x, y=1); it is run again and again"


@pytest.mark.parametrize(
    ("expression", "magic", "message"),
    [
        ("", "explore", f"%explore takes one call.\n  given:  nothing\n  Hint: {COMPILED}."),
        ("f", "explore", f"%explore takes one call.\n  given:  f\n  Hint: {COMPILED}."),
        ("f(x); g(x)", "jtime", f"%jtime takes one call.\n  given:  f(x); g(x)\n  Hint: {AGAIN}."),
        ("y = f(x)", "explore", f"%explore takes one call.\n  given:  y = f(x)\n  Hint: {COMPILED}."),
        # A caret stands under the letter that can't be there.
        (
            "f(x))",
            "explore",
            f"%explore takes one call.\n  given:  f(x))\n{' ' * 14}^ unmatched ')'\n  Hint: {COMPILED}.",
        ),
        (
            "f(x) --target h100",
            "explore",
            f"%explore takes one call.\n  given:  f(x) --target h100\n{' ' * 24}^ invalid syntax\n"
            "  Hint: options go before the call: %explore --target h100 f(x).",
        ),
        (
            "f(g(x)) --stacks",  # minus minus a name, for Python
            "jprofile",
            "%jprofile takes one call.\n  given:  f(g(x)) --stacks\n"
            "  Hint: options go before the call: %jprofile --stacks f(g(x)).",
        ),
        (
            "f(x).block_until_ready()",
            "explore",
            "a call that is explored has no result to wait for.\n  given:  f(x).block_until_ready()\n"
            "  Hint: leave the waiting out: f(x).",
        ),
        (
            "f(x).block_until_ready()",
            "jprofile",
            "%jprofile waits for results itself.\n  given:  f(x).block_until_ready()\n"
            "  Hint: leave the waiting out: f(x).",
        ),
        (
            "f(x).block_until_ready()",
            "lint",
            "a call that is looked at has no result to wait for.\n  given:  f(x).block_until_ready()\n"
            "  Hint: leave the waiting out: f(x).",
        ),
    ],
)
def test_what_is_no_single_call_is_refused_with_what_would_be_one(expression, magic, message):
    with pytest.raises(ExpressionError) as raised:
        single_call(expression, 1, 0, magic)
    assert str(raised.value).partition("\n\n")[0] == message


@pytest.mark.parametrize("expression", ["x.block_until_ready(1)", "block_until_ready()", "jax.block_until_ready(x)"])
def test_another_function_of_that_name_is_a_call(expression):
    assert ast.unparse(single_call(expression, 1, 0)) == expression


@pytest.mark.parametrize(
    ("cell", "call", "keeps"),
    [
        ("a = 1\nf(a)", "f(a)", False),
        ("y = f(a)", "y = f(a)", True),
        ("y: int = f(a)", "y: int = f(a)", True),
        ("y += f(a)", "y += f(a)", True),
    ],
)
def test_the_last_statement_of_a_cell_is_its_call(cell, call, keeps):
    tree = ast.parse(cell)
    count = len(tree.body)
    statement = last_call(tree)
    assert (ast.unparse(statement), assigns(statement), len(tree.body)) == (call, keeps, count - 1)


@pytest.mark.parametrize(
    ("cell", "given"),
    [
        ("", "nothing"),
        ("y = 3", "y = 3"),
        ("def f(x):\n    return x", "def f(x):"),
        ("y: int", "y: int"),
        ("f(x)\nimport jax", "import jax"),
    ],
)
def test_a_cell_that_ends_otherwise_is_refused_with_how_it_ends(cell, given):
    with pytest.raises(ExpressionError) as raised:
        last_call(ast.parse(cell), "jtime")
    assert str(raised.value) == (
        f"%%jtime takes a cell that ends in a call, f(x) or y = f(x).\n  given:  {given}\n"
        "  Hint: the last statement is what is timed; to explore a single call, use %jtime f(x)."
    )


def test_a_redirected_call_evaluates_what_it_did_and_gives_it_to_another_function():
    namespace = {"given": (2, 3), "more": {"z": 5}, CALLEE: lambda f, *args, **kwargs: (f, args, kwargs)}
    module = redirect(ast.parse("y = max(1, *given, key=None, **more)").body[0])
    exec(compile(module, "<test>", "exec"), namespace)
    assert namespace["y"] == (max, (1, 2, 3), {"key": None, "z": 5})


# Places ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "expression", "column"),
    [(1, "f(x)", 9), (2, "f(x)", 2), (2, "g(x)", 0), (3, "f(x)", 0), (4, "f(x)", 0)],
)
def test_an_expression_stands_where_it_is_found_in_its_line_or_at_its_beginning(line, expression, column):
    file = "<a cell of test_calls>"
    linecache.cache[file] = (1, None, ["%explore f(x)\n", "  f(x) + f(x)\n", "f(y)\n"], file)
    try:
        assert typed_column(file, line, expression) == column
    finally:
        del linecache.cache[file]


def test_where_nobody_has_the_text_it_stands_at_the_beginning():
    assert typed_column("<nobody has this>", 1, "f(x)") == 0


def users(name):
    """A function that raises, as if a module of this name defined it."""
    namespace = {"__name__": name}
    exec(compile("def f(inner=None):\n    if inner: inner()\n    raise ValueError", f"<{name}>", "exec"), namespace)
    return namespace["f"]


def lines_of(traceback):
    names = []
    while traceback is not None:
        names.append((traceback.tb_frame.f_code.co_filename, traceback.tb_lineno))
        traceback = traceback.tb_next
    return names


def test_a_traceback_has_the_users_lines_alone_those_of_the_cause_behind():
    def caught(function, *inner):
        try:
            function(*inner)
        except ValueError as error:
            return error

    error = caught(users("explorer.capture"), users("train"))
    error.__cause__ = caught(users("model"), users("jax._src.core"))
    own = [file for file, _ in lines_of(users_traceback(error, None)) if file.startswith("<")]
    assert own == ["<train>", "<model>"]
    assert [line for file, line in lines_of(users_traceback(error, None)) if file == "<model>"] == [2]


def test_without_a_line_of_the_users_it_is_the_line_of_the_magic():
    error = ValueError("never raised")
    assert users_traceback(error, None) is None
    frame = inspect.currentframe()
    assert lines_of(users_traceback(error, frame))[0][0] == __file__
