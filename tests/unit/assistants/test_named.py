"""What the command line of `mcp` named may run, and nothing else."""

from pathlib import Path

import pytest

import explorer as ex
from explorer.assistants.named import Definitions, Named, argument
from explorer.assistants.tools import summary_of

OTHER = """
import dataclasses
import os
import tasks
import types
from os import abort
from tasks import wipe as clean
from tasks import Base

import equinox as eqx
from flax import nnx

DTYPE = tasks.dtype
alias = os.abort
again = alias
first, second = os.abort, 3
either = alias if os else 3
shell = os.environ["SHELL"]
call = exec

def any(x):
    return x

def wrapped(): ...

wrapped = os.abort

class Model(eqx.Module):
    depth: int
    scale = 2.0
    stop = os.abort
    from os import fork

    def loss(self, x): ...

    def _private(self): ...

class Linear(nnx.Module):
    def __init__(self, size, run):
        self.size = size
        self.run = run
        self.exec = exec
        self.stop = os.abort

    def __call__(self, x): ...

    @classmethod
    def new(cls): ...

class Child(Linear, Base):
    def step(self, x): ...

def make() -> Model: ...

def make_quoted() -> "Model": ...

model = Model(3)
jitted = eqx.filter_jit(model)
linear = Linear.new()
child = Child(3, print)
made = make()
quoted = make_quoted()
config = types.SimpleNamespace(depth=3, stop=os.abort)
params = make()
params = params["layer"]
ring = ring
with tasks.context():
    inside = Model(3)
for looped in [os.abort]:
    pass
try:
    maybe = 3
except OSError as error:
    pass
functions = [any, os.abort]
one, (two, *rest) = functions
thread = tasks.Thread()

model2 = Model(3)
model2.loss = os.abort
Child.step2 = os.abort
Linear.added = any

if __name__ == "__main__":
    from os import abort as any
"""


@pytest.fixture(autouse=True)
def _project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("train.py", "other.py", "step.golden"):
        (tmp_path / name).write_text("")
    (tmp_path / "other.py").write_text(OTHER)
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("raise SystemExit('packages are found without an import')")
    (tmp_path / "package" / "module.py").write_text("def f():\n    pass\n")


def test_names_are_sorted_by_what_they_are():
    named = Named.of(["train.py:step", "other.py", "train.py --steps 3", "step.golden", "package.module"])
    assert named.functions == ("train.py:step",)
    assert named.modules == ("other.py", "package.module")
    assert named.scripts == {"other.py": ("other.py",), "train.py --steps 3": ("train.py", "--steps", "3")}
    assert named.goldens == ("step.golden",)


def test_only_what_was_named_is_given():
    named = Named.of(["train.py:step", "other.py", "package.module"])
    for function in ("train.py:step", "other.py:any", "other.py:Model.loss", "package.module:f"):
        assert named.call(function, ()) == [function]
    for function in ("train.py:other", "os:system", "other.py", "package:f", "../other.py:f", ":any", "", ":"):
        with pytest.raises(ex.errors.OptionError, match=r"not named on the command line; there are: train\.py:step"):
            named.call(function, ())
    for function in (
        "other.py:f()",
        "other.py:",
        "other.py:any.",
        "other.py:.any",
        "other.py: any",
        "package.module:os",
    ):
        with pytest.raises(ex.errors.OptionError, match="it defines"):
            named.call(function, ())
    assert named.script("other.py") == ("other.py",)
    for script in ("train.py", "other.py --more", "train.py:step"):
        with pytest.raises(ex.errors.OptionError, match=r"there are: 'other\.py'"):
            named.script(script)


OWN = [
    *("any", "Model", "Model.loss", "Model.scale", "model", "model.loss", "model.depth", "model.scale", "jitted"),
    *("linear", "linear.size", "linear.run", "Linear.new", "child.step", "child.size", "made.loss", "quoted.loss"),
    *("config.depth", "params", "inside.loss", "maybe", "functions", "thread", "second", "one", "two", "rest"),
    *("linear.added", "Linear.added", "child.added", "model2", "model2.depth"),
]
FOREIGN = [
    *("os", "os.abort", "abort", "clean", "Base", "tasks.wipe", "tasks", "alias", "again", "first", "either", "shell"),
    *("call", "wrapped", "Model.stop", "Model.fork", "Model._private", "model.replace", "model.__class__"),
    *("Model.depth", "linear.exec", "linear.stop", "linear.__call__", "linear._run", "child.mro", "child.wipe"),
    *("config.stop", "looped", "config.x", "error", "thread.start", "model.loss.x", "any.__globals__", "any.func"),
    *("functions.sort", "exec", "model2.loss", "Child.step2", "child.step2", "model2.stop"),
    *("print", "__import__", "__builtins__", "__name__", "_x", "", ".", "any.", ".any", "any..x", "nothing", "DTYPE"),
    *("eqx.Module", "nnx.jit", "jitted.loss", "params.layer", "model.", "Model()", "any ", "ａｎｙ", "any\n", "any\0"),
]  # fmt: skip


@pytest.mark.parametrize("name", OWN)
def test_a_name_that_the_file_defines_is_its_own(name):
    assert Definitions.of("other.py").has(name)


@pytest.mark.parametrize("name", FOREIGN)
def test_a_name_that_the_file_imports_or_takes_from_elsewhere_is_not_its_own(name):
    assert not Definitions.of("other.py").has(name)


def test_the_names_of_a_file_are_its_own_in_their_order():
    names = Definitions.of("other.py").names
    assert names[:5] == ["second", "any", "Model", "Linear", "Child"]
    assert {*names} <= {
        *OWN,
        "Linear",
        "Child",
        "child",
        "make",
        "make_quoted",
        "made",
        "quoted",
        "config",
        "inside",
        "ring",
    }


def test_a_file_that_python_can_not_read_and_a_module_without_a_source_are_refused(tmp_path):
    (tmp_path / "broken.py").write_text("def f(:")
    (tmp_path / "nul.py").write_bytes(b"a = 1\0")
    (tmp_path / "deep.py").write_text("(" * 5000)
    for place in ("broken.py", "nul.py", "deep.py", "gone.py", "sys", "nowhere.at.all", "package.gone", "math"):
        with pytest.raises(ex.errors.OptionError):
            Definitions.of(place)


def test_circles_and_long_chains_of_names_end():
    lines = [f"a{at} = a{at + 1} if c else a{at + 1}\na{at} = a{(at * 7) % 200}" for at in range(200)]
    Path("other.py").write_text("\n".join([*lines, "a200 = a0"]))
    assert Definitions.of("other.py").has("a0")
    Path("other.py").write_text("\n".join([*lines, "import os", "a200 = os.abort"]))
    assert not Definitions.of("other.py").has("a0")


@pytest.mark.parametrize(
    "name", ["nothing.py", "nothing.py:step", "nothing.golden", "train.py:step --arg 3", "rm -rf", ""]
)
def test_a_name_that_can_be_nothing_is_refused(name):
    with pytest.raises(ex.errors.OptionError):
        Named.of([name])


@pytest.mark.parametrize(
    "text", ["f32[8,128]", "x=f32[]", "3", "rate=-0.5", "'mean'", "params", "axis=(0, 1)", "config.depth", "d=child"]
)
def test_arguments_that_are_no_code_pass(text):
    assert argument(text, Definitions.of("other.py")) == text
    assert Named.of(["other.py"]).call("other.py:any", [text]) == ["other.py:any", f"--arg={text}"]


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').getcwd()", "x=open('a')", "jnp.ones(3)", "[f() for f in g]", "a+b", "lambda: 0", "x==y",
        "10**9", "os", "os.abort", "jax", "exec", "model.__class__", "x=tasks.wipe", "f'{any}'", "any.__globals__",
        "a:=3", "config.stop", "*any", "**any", "not 3", "3 if any else 4", "params[0]", "x=jnp",
        "DTYPE", "f=alias", "wrapped",
    ],
)  # fmt: skip
def test_code_is_refused_as_an_argument(text):
    with pytest.raises(ex.errors.OptionError, match="is code"):
        argument(text, Definitions.of("other.py"))


@pytest.mark.parametrize("text", ["9" * 1001, "(" * 2000, "a" * 100_000, "f32[" + "1," * 1000 + "1]", "'\0'"])
def test_long_names_and_arguments_are_refused_in_few_words(text):
    named = Named.of(["other.py"])
    for name, arguments in ((f"other.py:{text}", []), ("other.py:any", [text]), ("other.py:any", ["3"] * 101)):
        with pytest.raises(ex.errors.OptionError) as raised:
            named.call(name, arguments)
        assert len(str(raised.value)) < 300
    with pytest.raises(ex.errors.OptionError) as raised:
        named.script(text)
    assert len(str(raised.value)) < 300


def test_an_answer_is_short_and_says_what_it_leaves_out():
    lines = [f"line {number}" for number in range(40)]
    short = summary_of({"summary": lines})
    assert short[:12] == lines[:12]
    assert short[12:] == ["… and 28 more lines, in the report"]
    assert summary_of({"summary": ["a" * 1000]}) == ["a" * 400]
    assert summary_of({}) == []
