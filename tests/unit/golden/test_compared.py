"""What is said of a record beside a new one: by how much, on which line, and why. Records made by hand."""

from dataclasses import replace

from explorer.analysis.golden.compare import compared
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
    assert changes(before, after)["kernels"].where.startswith("most of it on no line that is known")


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
