"""`python -m explorer explain NAME`."""

import sys

import pytest

import explorer as ex
from explorer.__main__ import explain, main


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("InputShapeError", "What to do:"),
        ("explorer.explore", "explorer.explore(function: Callable[..., Any] | Call, /"),
        ("Capture.fate", "explorer.Capture.fate(self, node: Node) -> Fate"),
        ("EX012", "Silence it"),
        ("unrolled-loop", "EX012 unrolled-loop (warning)"),
    ],
)
def test_a_name_is_explained(capsys, name, says):
    assert main(["explain", name]) == 0
    assert says in capsys.readouterr().out


@pytest.mark.parametrize("name", ["InputShapError", "Capture.fat", "", "EX999"])
def test_what_has_no_page_is_refused_with_the_nearest(capsys, name):
    assert main(["explain", name]) == 1
    assert f"there is no error, rule or public name {name!r}" in capsys.readouterr().err


@pytest.mark.parametrize("is_terminal", [True, False])
def test_an_error_in_a_terminal_names_its_page(capsys, monkeypatch, is_terminal):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: is_terminal)
    assert main(["open", "/no/such/module.hlo"]) == 1
    said = capsys.readouterr().err
    name = said.partition(":")[0]
    assert (f"python -m explorer explain {name}" in said) == is_terminal
    assert main(["explain", name]) == 0


def test_every_public_name_is_explained():
    for place in (ex, ex.types, ex.errors, ex.compat.tripy):
        for name in place.__all__:
            assert explain(name).startswith(("explorer.ExplorerError", f"{place.__name__}.{name}"))
