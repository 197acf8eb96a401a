"""A cell whose loops are watched does what it does when nobody watches: judged by running it both ways."""

import ast
import contextlib
import io
import linecache
import traceback
import warnings

import jax
import numpy as np
import pytest

from explorer.hotpath.loops import prepare
from tests.unit.hotpath.cells import CELLS, PRELUDE


class Asked:
    """Stands for a hot function: what it was made of runs in place of the statements each time that it can."""

    state = "compiled"

    def __init__(self, function):
        self.function, self.runs = function, 0

    def ran_before(self, calls, seconds):
        assert calls > 0
        assert seconds >= 0

    def entrance(self):
        def enter(*values):
            try:
                result = self.function(*values)
            except Exception:
                return None, object()
            self.runs += 1
            return result, None

        return enter


class Always:
    """Hot paths that trust each piece that proves to compute only, at once: harder on what is cut than real ones."""

    on, least_seconds = True, 0.0

    def __init__(self):
        self.pieces = []

    def adopt(self, function):
        self.pieces.append(Asked(function))
        return self.pieces[-1]


def plain(value):
    """A value of a namespace, as something that can be compared."""
    if isinstance(value, (list, tuple)):
        return type(value).__name__, [plain(one) for one in value]
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    if isinstance(value, set):
        return sorted(map(str, value))
    if isinstance(value, jax.Array) and jax.dtypes.issubdtype(value.dtype, jax.dtypes.prng_key):
        value = jax.random.key_data(value)
    if isinstance(value, (jax.Array, np.ndarray, np.generic)):
        rounded = np.asarray(value, np.float64).round(4).tolist()
        return type(value).__name__, str(value.dtype), getattr(value, "weak_type", None), value.shape, rounded
    return value if isinstance(value, (bool, int, str, float, bytes, type(None))) else type(value).__name__


def ran(cell, paths=None):
    """All that a cell does: what it prints, warns of and raises, from where, and the names that it leaves."""
    text, file = PRELUDE + cell, "<cell>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    namespace, printed, raised = {"__name__": "__main__"}, io.StringIO(), None
    tree = ast.parse(text)
    prepared = prepare(tree, file, namespace, paths) if paths else None
    code = prepared.code if prepared else compile(tree, file, "exec", dont_inherit=True)
    with contextlib.redirect_stdout(printed), warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            exec(code, namespace)
        except Exception as error:
            frames = traceback.extract_tb(error.__traceback__)
            raised = type(error), str(error), [(f.lineno, f.name) for f in frames if f.filename == file]
    assert prepared is None or prepared.problem == ""
    for name in ("__builtins__", "__warningregistry__"):
        namespace.pop(name, None)
    names = {name: plain(value) for name, value in namespace.items()}
    texts = [(str(one.message), one.lineno) for one in warned]
    return (printed.getvalue(), texts, raised, names, list(namespace)), prepared


# What guards hold, who trusts without any misses; real hot paths run these in `test_watched.py`.
GUARDED = {
    "a number that changes late", "classes and their globals", "a function that is defined anew",
    "values that stop being arrays",
}  # fmt: skip


@pytest.mark.parametrize("name", [name for name in CELLS if name not in GUARDED])
def test_a_cell_does_the_same(name):
    expected, _ = ran(CELLS[name])
    outcome, _ = ran(CELLS[name], Always())
    assert outcome == expected


@pytest.mark.parametrize(
    "name",
    [
        "a training loop", "weights in a list, by a comprehension whose names are its own", "prints between", "keys",
        "break", "while over a value", "dicts that are new each turn", "loops inside each other", "with and try",
        "del at the end of each turn", "two statements in a line", "a function reads a global that the loop gives",
    ],
)  # fmt: skip
def test_what_computes_is_cut_out_and_runs_in_its_place(name):
    paths = Always()
    ran(CELLS[name], paths)
    assert paths.pieces
    assert all(piece.runs for piece in paths.pieces)


def test_a_training_loop_becomes_one_function_with_a_name():
    _, prepared = ran(CELLS["a training loop"], Always())
    (function,) = prepared.proposed
    assert function.text == (
        "def update_W(W):\n"
        "    loss, grad = jax.value_and_grad(loss_of)(W)\n"
        "    W = W - 0.1 * grad\n"
        "    return loss, grad, W"
    )
    line = PRELUDE.count("\n") + 3
    assert (function.name, function.first_line, function.last_line) == ("update_W", line, line + 1)
    assert prepared.left == ()


def test_statements_that_stay_say_why():
    _, prepared = ran(CELLS["a number that changes at each turn"], Always())
    assert [left.reason for left in prepared.left] == [
        "`step` is a different number in each iteration",
        "`rate` is a different number in each iteration",
    ]
    _, prepared = ran(CELLS["Python's numbers come out"], Always())
    assert [left.reason for left in prepared.left] == ["it returns something other than arrays"] * 2


def test_a_cell_without_loops_or_that_awaits_is_left_as_it_is():
    for text in ("x = 1", "def f():\n    for i in range(3):\n        y = i + 1"):
        assert prepare(ast.parse(text), "<cell>", {}, Always()).proposed == ()

    def compile_cell(tree, file, mode):
        return compile(tree, file, mode, flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)

    text = "for i in range(3):\n    x = await g(i) + 1"
    prepared = prepare(ast.parse(text), "<cell>", {}, Always(), compile=compile_cell)
    assert prepared.code == compile_cell(ast.parse(text), "<cell>", "exec")


def test_a_syntax_error_is_pythons_own():
    with pytest.raises(SyntaxError, match="'return' outside function"):
        prepare(ast.parse("return 1"), "<cell>", {}, Always())


def test_a_fault_of_the_watch_costs_the_cell_nothing():
    class Broken(Always):
        def adopt(self, function):
            raise ZeroDivisionError("a fault")

    text = PRELUDE + CELLS["a training loop"]
    namespace = {}
    prepared = prepare(ast.parse(text), "<cell>", namespace, Broken())
    exec(prepared.code, namespace)
    assert "a fault" in prepared.problem
    expected, _ = ran(CELLS["a training loop"])
    assert plain(namespace["W"]) == expected[3]["W"]
