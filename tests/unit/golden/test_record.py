"""A record says the same of the same program, and the check says what is different."""

from __future__ import annotations

import json
from dataclasses import replace

import jax
import jax.numpy as jnp
import pytest
from hypothesis import given
from hypothesis import strategies as st

import explorer as ex
from explorer.__main__ import main
from explorer.analysis.golden import matched_lines
from explorer.files.golden import from_toml, to_toml
from explorer.model.golden import Golden, LineRecord, ProgramRecord

X = jnp.ones((16, 32))
SOURCE = """\
import jax.numpy as jnp

def step(x):
    y = jnp.tanh(x)
    return y @ y.T
"""
WORSE = SOURCE.replace("    return", "    y = jnp.sort(y)\n    return")


def step(x):
    y = jnp.tanh(x)
    return y @ y.T


def test_a_record_counts_what_the_compiler_made():
    # 16 × 32 elements and 16 × 16 dots of 32: counted by hand.
    program = ex.record(step, X).program("cpu")
    assert program.kernels == 2
    assert program.flops == 16 * 32 + 2 * 16 * 16 * 32
    assert [(row.code, list(row.equations)) for row in program.lines] == [
        ("y = jnp.tanh(x)", ["tanh f32[16,32]"]),
        ("return y @ y.T", ["dot_general f32[16,16]", "transpose f32[32,16]"]),
    ]


@pytest.mark.slow
def test_a_record_is_the_same_each_time():
    first = to_toml(ex.record(step, X))
    jax.clear_caches()
    assert to_toml(ex.record(step, X)) == first


def test_the_same_function_passes():
    result = ex.check(step, X, golden=ex.record(step, X))
    assert result.passed
    assert result.to_text() == "step: as recorded"


def test_what_is_better_passes_and_is_named():
    def worse(x):
        y = jnp.sort(jnp.tanh(x))
        return y @ y.T

    result = ex.check(step, X, golden=ex.record(worse, X))
    assert result.passed
    assert {change.measure for change in result.gains} >= {"kernels", "bytes"}
    assert "update the golden file" in result.to_text()


def test_a_tolerance_allows_growth():
    golden = ex.record(step, X)
    wide = replace(golden, tolerance={**golden.tolerance, "kernels": 9, "flops": 9, "bytes": 9, "peak_memory": 9})

    def more(x):
        y = jnp.sort(jnp.tanh(x))
        return y @ y.T

    assert not ex.check(more, X, golden=golden).passed
    assert ex.check(more, X, golden=wide).passed


def test_another_jax_is_the_cause_where_the_equations_are_the_same():
    golden = ex.record(step, X)
    (program,) = golden.programs
    older = replace(golden, jax="0.1", programs=(replace(program, kernels=1),))
    result = ex.check(step, X, golden=older)
    assert [change.cause for change in result.regressions] == [
        f"JAX 0.1 became {jax.__version__}; the equations are the same"
    ]
    assert result.notes == [f"recorded with JAX 0.1; this is {jax.__version__}"]


def test_where_nobody_can_tell_the_cause_that_is_said():
    golden = ex.record(step, X)
    (program,) = golden.programs
    result = ex.check(step, X, golden=replace(golden, programs=(replace(program, kernels=1),)))
    assert [change.cause for change in result.regressions] == ["not known: the equations are the same, and so is JAX"]


def test_a_list_of_targets_is_a_list():
    with pytest.raises(ex.errors.OptionError, match=r"targets=\['h100'\]"):
        ex.record(step, X, targets="h100")


# The file ------------------------------------------------------------------------------------------------------------

_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
_COUNTS = st.dictionaries(_TEXT, st.integers(0, 2**62), max_size=3)
_AMOUNT = st.integers(0, 2**62)
_LINES = st.builds(LineRecord, _TEXT, st.integers(0, 9999), _TEXT, _COUNTS, _COUNTS, _AMOUNT, _AMOUNT)
_PROGRAMS = st.builds(
    ProgramRecord,
    target=_TEXT,
    kernels=_AMOUNT,
    flops=_AMOUNT,
    bytes=_AMOUNT,
    peak_memory=_AMOUNT,
    results=_AMOUNT,
    constants=_AMOUNT,
    wire=_AMOUNT,
    donated=_AMOUNT,
    collectives=_COUNTS,
    findings=_COUNTS,
    lines=st.lists(_LINES, max_size=3).map(tuple),
)


@given(
    st.builds(
        Golden,
        function=_TEXT,
        jax=_TEXT,
        programs=st.lists(_PROGRAMS, max_size=2).map(tuple),
        place=_TEXT,
        arguments=st.lists(_TEXT, max_size=2).map(tuple),
        compiles=_COUNTS,
    )
)
def test_what_is_written_is_read(golden):
    assert from_toml(to_toml(golden)) == golden


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "format = 1"),
        ("format = 2", "format = 1"),
        ("format = ", "no TOML"),
        ("format = 1\nfonction = 'f'", "Did you mean `function`"),
        ("format = 1\nfunction = 3", "a text was expected"),
        ("format = 1\n[tolerance]\nbytes = -1.0", "a fraction of at least 0"),
        ("format = 1\n[tolerance]\nbyte = 0.1", "Did you mean `bytes`"),
        ("format = 1\n[[program]]\nkernels = 'many'", "an integer was expected"),
        ("format = 1\n[[program]]\ntarget = 'cpu'", "required"),
        ("format = 1\n[[program]]\n[[program.line]]\nlines = 3", "Did you mean `line`"),
        ("format = 1\ncompiles = 3", "mapping|table|expected|items"),
    ],
)
def test_what_is_no_golden_file_is_refused(tmp_path, text, what):
    path = tmp_path / "x.golden"
    path.write_text(text)
    with pytest.raises(ex.errors.GoldenFileError, match=what) as caught:
        Golden.load(path)
    assert str(path) in str(caught.value)


# Which line is which -------------------------------------------------------------------------------------------------


def _rows(*codes):
    return [LineRecord("a.py", number, code, {code.split("=")[-1]: 1}) for number, code in enumerate(codes, 1)]


def _pairs(before, after):
    return [(old and old.code, new and new.code) for old, new in matched_lines(_rows(*before), _rows(*after))]


def test_moved_lines_are_themselves():
    assert _pairs(["a=1", "b=2"], ["new=0", "a=1", "b=2"]) == [(None, "new=0"), ("a=1", "a=1"), ("b=2", "b=2")]


def test_a_renamed_line_is_known_by_its_equations():
    assert _pairs(["a=1", "b=2", "c=3"], ["a=1", "wide=2", "c=3"])[1] == ("b=2", "wide=2")


def test_an_edited_line_is_the_one_between_its_neighbours():
    assert _pairs(["a=1", "b=2", "c=3"], ["a=1", "b=5", "c=3"])[1] == ("b=2", "b=5")


def test_of_two_new_lines_the_more_alike_is_the_edited_one():
    pairs = _pairs(["a=1", "scores=dot", "c=3"], ["a=1", "mask=tri", "scores=sort", "c=3"])
    assert pairs[1:3] == [(None, "mask=tri"), ("scores=dot", "scores=sort")]


@given(st.lists(st.sampled_from("abcd"), max_size=8), st.lists(st.sampled_from("abcd"), max_size=8))
def test_each_line_has_one_partner_at_most(before, after):
    pairs = _pairs(before, after)
    assert [old for old, _ in pairs if old is not None] == before
    assert [new for _, new in pairs if new is not None] == after


# The shell -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(SOURCE)
    assert main(["record", "train.py:step", "--arg", "f32[16,32]"]) == 0
    return tmp_path


def test_the_shell_records_checks_and_updates(project, capsys):
    assert main(["check"]) == 0
    (project / "train.py").write_text(WORSE)
    capsys.readouterr()
    assert main(["check"]) == 1
    assert "train.py:5: `y = jnp.sort(y)` is new" in capsys.readouterr().out
    assert main(["check", "step.golden", "--update"]) == 0
    assert main(["check"]) == 0


def test_a_check_is_told_to_programs(project, capsys):
    (project / "train.py").write_text(WORSE)
    capsys.readouterr()
    assert main(["check", "--format", "json"]) == 1
    said = json.loads(capsys.readouterr().out)
    assert (said["schema"], said["passed"]) == ("explorer/check/1", False)
    assert {change["line"] for change in said["checks"][0]["regressions"]} == {5}
    assert main(["check", "--format", "sarif"]) == 1
    results = json.loads(capsys.readouterr().out)["runs"][0]["results"]
    assert {result["locations"][0]["physicalLocation"]["region"]["startLine"] for result in results} == {5}
    assert main(["check", "--format", "markdown"]) == 1
    assert "| train.py:5 |" in capsys.readouterr().out


def test_a_project_names_its_golden_files(project, capsys):
    (project / "kept").mkdir()
    (project / "step.golden").rename(project / "kept" / "step.golden")
    (project / "pyproject.toml").write_text('[tool.explorer.check]\nfiles = ["other/*.golden"]\n')
    assert main(["check"]) == 2
    assert "there is no golden file" in capsys.readouterr().err
    (project / "pyproject.toml").write_text('[tool.explorer.check]\nfiles = ["kept/*.golden"]\n')
    assert main(["check"]) == 0
    (project / "pyproject.toml").write_text("[tool.explorer.check]\nfiles = 3\n")
    assert main(["check"]) == 2
    assert "allowed is a list of paths" in capsys.readouterr().err


def test_the_tolerance_of_a_file_outlives_an_update(project):
    path = project / "step.golden"
    path.write_text(path.read_text().replace("bytes = 0.01", "bytes = 5.0"))
    (project / "train.py").write_text(WORSE)
    assert main(["check", "--update"]) == 0
    assert Golden.load(path).tolerance["bytes"] == 5.0


def test_a_number_where_counts_by_name_belong_is_refused():
    line = LineRecord("train.py", 3, "y = jnp.tanh(x)", {"tanh f32[8]": 1}, {"tanh → f32[8]": 1})
    text = to_toml(Golden("f", "", (ProgramRecord("cpu", 1, 8, 64, 64, lines=(line,)),)))
    assert from_toml(text).programs[0].lines == (line,)
    with pytest.raises(ex.errors.GoldenFileError):
        from_toml(text.replace('kernels = { "tanh → f32[8]" = 1 }', "kernels = inf"))
