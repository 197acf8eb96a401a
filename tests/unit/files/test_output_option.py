"""-o FILE of the shell's verbs."""

import argparse
from pathlib import Path

import pytest

from explorer.files.reports import add_output


def parser(endings=(), **options):
    made = argparse.ArgumentParser(exit_on_error=False)
    add_output(made, "where to", endings, **options)
    return made


def test_a_file_is_absolute_since_a_script_may_change_the_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert parser().parse_args(["-o", "page.html"]).output == tmp_path / "page.html"
    assert parser().parse_args([]).output is None


def test_several_are_a_list():
    several = parser(several=True)
    assert several.parse_args([]).output == []
    assert [path.name for path in several.parse_args(["-o", "a", "--output", "b"]).output] == ["a", "b"]


@pytest.mark.parametrize(
    ("name", "endings", "why"),
    [
        (".", (), "is a folder; name a file in it"),
        ("nowhere/a.html", (), "there is no folder"),
        ("a.gif", [".html"], "doesn't end in .html"),
        ("a.gif", [".png", ".svg", ".html"], "doesn't end in .png, .svg or .html"),
    ],
)
def test_what_can_t_be_written_is_refused_and_why(name, endings, why):
    with pytest.raises(argparse.ArgumentError, match=why):
        parser(endings).parse_args(["-o", name])
    assert not Path(name).is_file()
