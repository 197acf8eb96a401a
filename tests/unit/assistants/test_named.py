"""What the command line of `mcp` named may run, and nothing else."""

import pytest

import explorer as ex
from explorer.assistants.named import Named, argument
from explorer.assistants.verbs import summary_of


@pytest.fixture(autouse=True)
def _project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("train.py", "other.py", "step.golden"):
        (tmp_path / name).write_text("")


def test_names_are_sorted_by_what_they_are():
    named = Named.of(["train.py:step", "other.py", "train.py --steps 3", "step.golden", "package.module"])
    assert named.functions == ("train.py:step",)
    assert named.modules == ("other.py", "package.module")
    assert named.scripts == {"other.py": ("other.py",), "train.py --steps 3": ("train.py", "--steps", "3")}
    assert named.goldens == ("step.golden",)


def test_only_what_was_named_is_given():
    named = Named.of(["train.py:step", "other.py", "package.module"])
    for function in ("train.py:step", "other.py:any", "other.py:Model.loss", "package.module:f"):
        assert named.function(function) == function
    for function in (
        "train.py:other",
        "os:system",
        "other.py",
        "other.py:f()",
        "other.py:",
        "package:f",
        "../other.py:f",
    ):
        with pytest.raises(ex.OptionError, match=r"not named on the command line; there are: train\.py:step"):
            named.function(function)
    assert named.script("other.py") == ("other.py",)
    for script in ("train.py", "other.py --more", "train.py:step"):
        with pytest.raises(ex.OptionError, match=r"there are: 'other\.py'"):
            named.script(script)


@pytest.mark.parametrize(
    "name", ["nothing.py", "nothing.py:step", "nothing.golden", "train.py:step --arg 3", "rm -rf", ""]
)
def test_a_name_that_can_be_nothing_is_refused(name):
    with pytest.raises(ex.OptionError):
        Named.of([name])


@pytest.mark.parametrize(
    "text", ["f32[8,128]", "x=f32[]", "3", "rate=-0.5", "'mean'", "params", "axis=(0, 1)", "config.depth"]
)
def test_arguments_that_are_no_code_pass(text):
    assert argument(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').getcwd()",
        "x=open('a')",
        "jnp.ones(3)",
        "[f() for f in g]",
        "a+b",
        "lambda: 0",
        "x==y",
        "10**9",
    ],
)
def test_code_is_refused_as_an_argument(text):
    with pytest.raises(ex.OptionError, match="is code"):
        argument(text)


def test_an_answer_is_short_and_says_what_it_leaves_out():
    lines = [f"line {number}" for number in range(40)]
    short = summary_of({"summary": lines})
    assert short[:12] == lines[:12]
    assert short[12:] == ["… and 28 more lines, in the report"]
    assert summary_of({"summary": ["a" * 1000]}) == ["a" * 400]
    assert summary_of({}) == []
