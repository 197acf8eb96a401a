"""Which candidate made a check fail: among any verdicts, and among real commits."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

import explorer as ex
from explorer.__main__ import main
from explorer.files.reports import schema_text
from explorer.golden.commands import bisect
from explorer.model.golden import FAILS, PASSES, UNKNOWN, Verdict

STEP = """\
import jax.numpy as jnp

def step(x):
    y = jnp.tanh(x)
    return y @ y.T
"""


@given(st.integers(1, 20), st.data())
def test_the_first_that_fails_is_found_and_those_that_cant_be_checked_are_named(passing, data):
    failing = data.draw(st.integers(1, 20))
    outcomes = [PASSES] * passing + [FAILS] * failing
    for at in data.draw(st.sets(st.integers(1, max(passing + failing - 2, 1)), max_size=6)):
        if at < len(outcomes) - 1:
            outcomes[at] = UNKNOWN
    names = [str(at) for at in range(len(outcomes))]
    bisection = bisect(names, lambda name: Verdict(name, outcomes[int(name)]))
    first, last = int(bisection.first.candidate), int(bisection.last)
    assert first == outcomes.index(FAILS)
    assert last == max(at for at in range(first) if outcomes[at] == PASSES)
    assert [*bisection.between] == names[last + 1 : first]
    assert all(outcomes[int(name)] == UNKNOWN for name in bisection.between)
    assert len({verdict.candidate for verdict in bisection.tried}) == len(bisection.tried)  # none is compiled twice


@pytest.mark.parametrize("outcomes", [[FAILS, FAILS], [PASSES, PASSES], [UNKNOWN, FAILS], [PASSES, UNKNOWN]])
def test_ends_that_are_not_as_said_are_refused(outcomes):
    with pytest.raises(ex.errors.OptionError, match="needs an A that passes and a B that fails"):
        bisect(["0", "1"], lambda name: Verdict(name, outcomes[int(name)]))


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A repository in the working folder: what gives git its arguments."""

    def git(*arguments):
        command = ["git", "-c", "user.name=A", "-c", "user.email=a@b.c", *arguments]
        return subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True).stdout.strip()

    git("init", "-q")
    monkeypatch.chdir(tmp_path)
    return git


def commit(git, text):
    """A commit with this text of train.py; its name."""
    Path("train.py").write_text(text)
    git("add", "train.py")
    git("commit", "-m", "a step", "--allow-empty")
    return git("rev-parse", "--short", "HEAD")


@pytest.mark.slow
def test_the_commit_that_made_it_worse_is_named(repository, capsys):
    good = commit(repository, STEP)
    assert main(["record", "train.py:step", "--arg", "f32[8,8]"]) == 0
    bad = commit(repository, STEP.replace("tanh(x)", "tanh(jnp.sort(x))"))
    capsys.readouterr()
    assert main(["bisect", "step.golden", "--between", good, bad, "--format", "json"]) == 0
    written = json.loads(capsys.readouterr().out)
    jsonschema.validate(written, json.loads(schema_text("bisect")))
    assert (written["first_failing"]["candidate"], written["last_passing"]) == (bad, good)
    assert "sort f32[8,8]" in written["first_failing"]["text"]
    assert repository("worktree", "list").count("\n") == 0


@pytest.mark.slow
def test_those_that_cant_be_checked_are_named_and_what_isnt_committed_stays(repository, capsys):
    texts = [STEP, "# a comment\n" + STEP, "this is no Python\n", STEP.replace("tanh(x)", "tanh(jnp.sort(x))")]
    commits = [commit(repository, text) for text in (*texts, "\n" + texts[-1])]
    repository("checkout", "-q", commits[0])
    assert main(["record", "train.py:step", "--arg", "f32[8,8]"]) == 0
    repository("checkout", "-q", commits[-1])
    Path("train.py").write_text("what is not committed stays as it is")
    capsys.readouterr()
    assert main(["bisect", "step.golden", "--between", commits[0], commits[-1]]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith(f"{commits[3]} is the first that fails; {commits[1]} passes")
    assert f"can't be checked: {commits[2]}." in printed
    assert "sort f32[8,8]" in printed
    assert Path("train.py").read_text() == "what is not committed stays as it is"
    assert repository("worktree", "list").count("\n") == 0
