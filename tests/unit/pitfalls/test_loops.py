"""The Python loops of a text: which one runs a piece of it, what it goes through, and what it carries on."""

import itertools

import pytest

from explorer.capture.sources import Span
from explorer.pitfalls.source_loops import loops_of

numbers = itertools.count()


@pytest.fixture
def around(tmp_path):
    """The loop around the first `HERE` of a text."""

    def around(text):
        file = tmp_path / f"loops_{next(numbers)}.py"
        file.write_text(text)
        line = next(i for i, each in enumerate(text.splitlines(), 1) if "HERE" in each)
        column = text.splitlines()[line - 1].index("HERE")
        return loops_of(str(file)).around(Span(line, column, line, column + 4))

    return around


@pytest.mark.parametrize(
    ("text", "header"),
    [
        ("for i in rows:\n    HERE", (1, 0, 1, 13)),
        ("for i in HERE:\n    pass", None),  # that is done once
        ("while HERE:\n    pass", (1, 0, 1, 10)),  # and that in each turn
        ("for i in a:\n    for j in b:\n        HERE", (2, 4, 2, 14)),
        ("for i in a:\n    for j in HERE:\n        pass", (1, 0, 1, 10)),
        ("for i in a:\n    pass\nelse:\n    HERE", None),
        ("[HERE for i in a]", (1, 0, 1, 17)),
        ("[i for i in HERE]", None),
        ("{HERE: i for i in a}", (1, 0, 1, 20)),
        ("{i: HERE for i in a}", (1, 0, 1, 20)),
        ("for i in a:\n    [HERE for j in b]", (2, 4, 2, 21)),
        ("for i in a:\n    def f():\n        HERE", None),  # what is defined in a turn runs when it is called
        ("def f():\n    for i in a:\n        HERE", (2, 4, 2, 14)),
        ("def f():\n    for i in a:\n        pass\n    HERE", None),
        ("HERE", None),
        ("for i in a: (\n    HERE", None),  # it is no Python
    ],
)
def test_the_innermost_loop_whose_turns_run_it_is_the_one(text, header, around):
    loop = around(text)
    assert (loop and tuple(loop.header)) == header


@pytest.mark.parametrize(
    ("head", "source", "target", "arguments"),
    [
        ("for i in range(3):", "range(3)", "i", ["3"]),
        ("for i, x in enumerate(rows):", "enumerate(rows)", "(i, x)", []),
        ("for i in range(1, n + 1, 2):", "range(1, n + 1, 2)", "i", ["1", "n + 1", "2"]),
        ("for i in np.range(3):", "np.range(3)", "i", []),
        ("while x < 3:", "", "", []),
    ],
)
def test_a_loop_has_what_it_goes_through_and_what_it_calls_each(head, source, target, arguments, around):
    loop = around(f"{head}\n    HERE")
    assert (loop.source, loop.target, loop.range_arguments) == (source, target, arguments)
    assert not loop.is_comprehension


def test_a_comprehension_goes_through_its_first_source_and_carries_nothing(around):
    loop = around("y = [HERE for row in rows for x in row]")
    assert (loop.source, loop.target, loop.range_arguments) == ("rows", "row", [])
    assert (loop.is_comprehension, loop.carried, loop.collected) == (True, [], [])


@pytest.mark.parametrize(
    ("body", "carried", "collected"),
    [
        ("x = x + HERE", ["x"], []),
        ("x += HERE", ["x"], []),
        ("y = HERE; x = y", [], []),  # made anew in each turn
        ("y = x; x = HERE", ["x"], []),
        ("x = HERE; y = x", [], []),
        ("x, y = y, HERE", ["y"], []),
        ("a.append(HERE)", [], ["a"]),
        ("b.append(1); a.append(HERE); b.append(2)", [], ["b", "a"]),
        ("self.a.append(HERE)", [], []),
        ("a.extend(HERE)", [], []),
        ("append(HERE)", [], []),
        ("z = HERE + b; x += z; y = y * x", ["x", "y"], []),
        ("x[0] = HERE", [], []),
    ],
)
def test_a_turn_hands_on_what_it_reads_before_it_assigns_it(body, carried, collected, around):
    for head in ("for i in rows:", "while True:"):
        lines = "\n    ".join(part.strip() for part in body.split(";"))
        loop = around(f"{head}\n    {lines}")
        assert (loop.carried, loop.collected) == (carried, collected)
