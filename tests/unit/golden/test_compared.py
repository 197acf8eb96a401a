"""What is said of a record beside a new one: by how much, on which line, and why. Records made by hand."""

from dataclasses import replace

from explorer.analysis.golden import compared
from explorer.model.golden import Golden, LineRecord, ProgramRecord

TANH = LineRecord("m.py", 3, "y = jnp.tanh(x)", {"tanh f32[64]": 1}, {"tanh → f32[64]": 1}, 64, 512)
DOT = LineRecord("m.py", 4, "return y @ w", {"dot_general f32[8]": 1}, {"dot → f32[8]": 1}, 1000, 4096)
CPU = ProgramRecord("cpu", 2, 1064, 4608, 1000, lines=(TANH, DOT))


def golden(program=CPU, jax="0.10", **more):
    return Golden("step", jax, (program,), "m.py:2", **more)


def changes(before, after):
    result = compared(golden(before), golden(after), "step")
    return {change.measure: change for change in (*result.regressions, *result.gains)}


def with_line(row, **more):
    return replace(CPU, lines=(TANH, row) if row.code != TANH.code else (row, DOT), **more)


def test_the_same_record_has_no_change():
    result = compared(golden(), golden(), "step")
    assert (result.regressions, result.gains, result.notes, result.passed) == ([], [], [], True)


def test_an_amount_says_what_it_is_now_and_by_which_part_it_changed():
    after = changes(CPU, replace(CPU, flops=1330, bytes=9216, peak_memory=1500, kernels=3))
    assert after["flops"].text == "FLOPs: 1,330, 1,064 before, +25%"
    assert after["bytes"].text == "bytes moved: 9.2 kB, 4.6 kB before, +100%"
    assert after["peak_memory"].text == "memory at the peak: 1.5 kB, 1.0 kB before, +50%"
    assert after["kernels"].text == "kernels: 3, 2 before"  # so few that a share says nothing
    less = changes(CPU, replace(CPU, bytes=2304))
    assert less["bytes"].text == "bytes moved: 2.3 kB, 4.6 kB before, -50%"
    assert changes(CPU, replace(CPU, constants=2000))["constants"].text == "constants baked in: 2.0 kB, 0 B before"


def test_what_grows_regresses_and_what_shrinks_is_a_gain():
    worse = compared(golden(), golden(replace(CPU, kernels=5)), "step")
    assert ([c.measure for c in worse.regressions], worse.gains, worse.passed) == (["kernels"], [], False)
    better = compared(golden(), golden(replace(CPU, kernels=1)), "step")
    assert (better.regressions, [c.measure for c in better.gains], better.passed) == ([], ["kernels"], True)


def test_what_a_tolerance_allows_is_no_change_and_one_more_is():
    loose = golden(tolerance={**golden().tolerance, "flops": 0.5})
    assert compared(loose, golden(replace(CPU, flops=1596)), "step").passed  # one and a half times as much, exactly
    assert not compared(loose, golden(replace(CPU, flops=1597)), "step").passed
    assert compared(loose, golden(replace(CPU, flops=532)), "step").gains == []
    assert [c.measure for c in compared(loose, golden(replace(CPU, flops=531)), "step").gains] == ["flops"]


def test_less_that_is_donated_is_worse():
    donating = replace(CPU, donated=2000)
    worse = compared(golden(donating), golden(), "step")
    assert [c.text for c in worse.regressions] == ["donated arguments: 0 B, 2.0 kB before"]
    assert worse.regressions[0].cause == "other arguments are donated; the equations are the same"
    better = compared(golden(), golden(donating), "step")
    assert (better.regressions, [c.text for c in better.gains]) == ([], ["donated arguments: 2.0 kB, 0 B before"])


def test_collectives_findings_and_compiles_are_counted_one_by_one():
    before = replace(CPU, collectives={"all-gather": 1, "all-reduce": 2}, findings={"EX001": 1})
    after = replace(CPU, collectives={"all-gather": 3, "all-reduce": 2}, findings={})
    result = compared(
        golden(before, compiles={"step": 1, "eval": 2}), golden(after, compiles={"step": 3, "eval": 2}), "step"
    )
    assert [c.text for c in result.regressions] == ["all-gather: 3, 1 before", "step compiles 3 times, 1 before"]
    assert [c.text for c in result.gains] == ["EX001: 0, 1 before"]
    compiles = result.regressions[1]
    assert (compiles.file, compiles.line, compiles.function) == ("m.py", 2, "step")
    assert "explorer.watch()" in compiles.cause


def test_the_line_that_grew_most_is_named_with_its_kernels():
    more = replace(DOT, kernels={"dot → f32[8]": 1, "sort → f32[8]": 1}, bytes=9000)
    after = changes(CPU, with_line(more, kernels=3, bytes=9512))
    assert after["kernels"].where == "most of it on line 4 of m.py, `return y @ w`: new kernels sort → f32[8]"
    assert after["bytes"].where == "most of it on line 4 of m.py, `return y @ w`"
    other = replace(DOT, kernels={"sort → f32[8]": 1, "copy → f32[8]": 2})
    where = changes(CPU, with_line(other, kernels=4))["kernels"].where
    assert where.endswith("the kernels sort → f32[8] and copy → f32[8] ×2 instead of dot → f32[8]")
    fewer = replace(DOT, kernels={}, bytes=0)
    where = changes(CPU, with_line(fewer, kernels=1))["kernels"].where
    assert where.endswith("`return y @ w`: without dot → f32[8]")


def test_of_a_line_that_is_not_known_that_is_said():
    nowhere = replace(DOT, file="", line=0, code="")
    before = replace(CPU, lines=(TANH, nowhere))
    after = replace(CPU, kernels=3, lines=(TANH, replace(nowhere, kernels={"dot → f32[8]": 2})))
    assert changes(before, after)["kernels"].where.startswith("most of it on an unknown line")


def test_the_cause_is_the_line_that_was_edited_and_what_is_different_in_it():
    edited = replace(DOT, code="return (y @ w) * 2", equations={"dot_general f32[8]": 1, "mul f32[8]": 1})
    change = changes(CPU, with_line(edited, flops=2000))["flops"]
    assert (change.cause, change.file, change.line) == ("`return (y @ w) * 2` has mul f32[8] more", "m.py", 4)
    swapped = replace(edited, equations={"dot_general f32[8]": 1, "exp f32[8]": 2})
    change = changes(with_line(edited), with_line(swapped, flops=2000))["flops"]
    assert change.cause == "`return (y @ w) * 2` has exp f32[8] ×2 instead of mul f32[8]"
    change = changes(with_line(edited), with_line(replace(DOT, code="return y @ w"), flops=2000))["flops"]
    assert change.cause == "`return y @ w` has no mul f32[8] any more"


def test_of_many_equations_the_largest_come_first_and_what_moves_values_last():
    every = {"reshape f32[4096]": 1, "sin f32[4]": 1, "exp f32[400]": 1, "cos f32[40]": 1, "dot_general f32[8]": 1}
    edited = replace(DOT, code="return g(y)", equations=every)
    change = changes(CPU, with_line(edited, flops=2000))["flops"]
    assert change.cause == "`return g(y)` has exp f32[400], cos f32[40] and 2 others more"


def test_a_line_that_is_new_or_gone_is_called_so():
    new = LineRecord("m.py", 5, "z = jnp.sort(y)", {"sort f32[64]": 1}, {"sort → f32[64]": 1}, 64, 512)
    longer = replace(CPU, kernels=3, lines=(TANH, DOT, new))
    change = changes(CPU, longer)["kernels"]
    assert (change.cause, change.line) == ("`z = jnp.sort(y)` is new: sort f32[64]", 5)
    assert change.where.startswith("most of it on line 5")
    change = changes(longer, CPU)["kernels"]
    assert change.cause == "`z = jnp.sort(y)` is gone: sort f32[64]"
    both = replace(longer, lines=(replace(TANH, equations={"tanh bf16[64]": 1}), DOT, new))
    assert changes(CPU, both)["kernels"].cause == "`z = jnp.sort(y)` is new: sort f32[64]; so have 1 other line"


def test_where_the_equations_are_the_same_the_cause_is_what_else_is_different():
    returned = changes(CPU, replace(CPU, kernels=3, results=4000))["kernels"]
    assert returned.cause == "it returns 4.0 kB, 0 B before; the equations are the same"
    newer = compared(golden(), golden(replace(CPU, kernels=3), jax="0.11"), "step")
    assert newer.regressions[0].cause == "JAX 0.10 became 0.11; the equations are the same"
    assert newer.notes == ["recorded with JAX 0.10; this is 0.11"]
    unknown = changes(CPU, replace(CPU, kernels=3))["kernels"]
    assert unknown.cause == "not known: the equations are the same, and so is JAX"
    assert (unknown.file, unknown.line) == ("m.py", 2)


# Limits and ties -----------------------------------------------------------------------------------------------------


def test_of_lines_that_grew_the_one_that_grew_most_is_named_and_of_those_that_shrank_likewise():
    lines = [replace(DOT, line=line, code=f"line {line}", equations={f"e{line}": 1}, bytes=100) for line in (5, 6, 7)]

    def where(*amounts):
        now = [replace(line, bytes=amount) for line, amount in zip(lines, amounts, strict=True)]
        before, after = (replace(CPU, lines=tuple(rows)) for rows in (lines, now))
        changed = changes(replace(before, bytes=300), replace(after, bytes=sum(amounts)))
        return changed["bytes"].where, changed["bytes"].file, changed["bytes"].line

    assert where(150, 190, 100) == ("most of it on line 6 of m.py, `line 6`", "m.py", 6)
    assert where(50, 190, 100) == ("most of it on line 6 of m.py, `line 6`", "m.py", 6)
    assert where(50, 10, 100) == ("most of it on line 6 of m.py, `line 6`", "m.py", 6)
    assert where(90, 190, 10) == ("most of it on line 7 of m.py, `line 7`", "m.py", 7)  # it is less, all in all
    assert where(190, 190, 100) == ("most of it on line 5 of m.py, `line 5`", "m.py", 5)


def test_where_no_line_has_the_change_the_function_is_its_place():
    change = changes(CPU, replace(CPU, flops=2000))["flops"]
    assert (change.where, change.file, change.line) == ("", "m.py", 2)
    placeless = replace(golden(replace(CPU, flops=2000)), place="")
    (change,) = compared(golden(), placeless, "step").regressions
    assert (change.file, change.line) == ("", 0)


def test_a_line_without_a_file_is_no_place_to_go_to():
    nowhere = replace(DOT, file="", line=0, code="")
    grown = replace(nowhere, flops=3000)
    change = changes(replace(CPU, lines=(TANH, nowhere)), replace(CPU, flops=3064, lines=(TANH, grown)))["flops"]
    assert (change.file, change.line) == ("m.py", 2)
    edited = replace(grown, equations={"exp f32[8]": 1})
    change = changes(replace(CPU, lines=(TANH, nowhere)), replace(CPU, flops=3064, lines=(TANH, edited)))["flops"]
    assert change.cause == "code without a known source line has exp f32[8] instead of dot_general f32[8]"
    assert (change.file, change.line) == ("m.py", 2)


def test_which_edited_line_is_the_cause():
    """What follows from an edit, as the types of a line after it do, is not the edit."""
    first = replace(TANH, equations={"tanh bf16[64]": 1})
    edited = replace(DOT, code="return y @ w.T", equations={"dot_general f32[9]": 1})
    after = changes(CPU, replace(CPU, kernels=3, lines=(first, edited)))
    assert after["kernels"].cause == (
        "`return y @ w.T` has dot_general f32[9] instead of dot_general f32[8]; so have 1 other line"
    )
    library = replace(DOT, equations={"dot_general f32[9]": 1})
    after = changes(CPU, replace(CPU, kernels=3, lines=(first, library)))
    assert after["kernels"].cause == (
        "`y = jnp.tanh(x)` has tanh bf16[64] instead of tanh f32[64]; so have 1 other line"
    )


def test_long_code_is_cut_and_many_kernels_counted():
    code = "return " + "y + " * 30 + "w"
    equations = {"exp f32[4]": 3, "sin f32[4]": 1, "cos f32[2]": 1}
    after = changes(CPU, with_line(replace(DOT, code=code, equations=equations, kernels={}), kernels=9))["kernels"]
    assert after.cause == (f"`{code[:59]}…` has exp f32[4] ×3, sin f32[4] and 1 other instead of dot_general f32[8]")
    many = replace(DOT, kernels={"dot → f32[8]": 1, **{f"k{at} → f32[{at}]": 1 for at in range(1, 5)}})
    where = changes(CPU, with_line(many, kernels=6))["kernels"].where
    assert where.endswith("`return y @ w`: new kernels k4 → f32[4], k3 → f32[3] and 2 others")


def test_findings_have_lint_for_a_cause():
    (change,) = compared(golden(), golden(replace(CPU, findings={"EX001": 1})), "step").regressions
    assert (change.text, change.cause) == (
        "EX001: 1, 0 before",
        "the equations are the same; explorer.lint() explains the findings",
    )


def test_what_compiles_once_more_is_counted_from_nothing():
    result = compared(golden(compiles={"a": 1}), golden(compiles={"b": 1}), "step")
    assert [change.text for change in result.regressions] == ["b compiles 1 time, 0 before"]
    assert [change.text for change in result.gains] == ["a compiles 0 times, 1 before"]
