"""What-ifs: what a variant does, what it is held against, what is said of it, and how it is shown."""

import math
import xml.etree.ElementTree as ElementTree
from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import explorer as ex
from explorer.capture.agreement import difference_of
from explorer.model.results.sweep import Difference, Variant, WhatIf
from explorer.model.results.timing import Ratio, Samples
from explorer.view.figure_svg import svg_of
from explorer.view.measure.what_if import WhatIfView, figure, time_scale

BRIEF = 1e-3  # seconds of measuring: what is tested here is not time


def scale(x, y):
    return x * 2 + y


def loss(w, x):
    return jnp.sum(jnp.sin(jnp.sin(x @ w) @ w) ** 2)


ONES = jnp.ones((8, 8))


def test_each_variant_is_a_row_after_the_plain_one():
    found = ex.what_if(scale, ONES, ONES, donate=["x", 1, (0, 1)], dtype=jnp.bfloat16, time=False)
    assert [row.name for row in found] == ["plain", "donate x", "donate y", "donate x, y", "dtype bfloat16"]
    assert [row.kind for row in found.variants] == ["donate"] * 3 + ["dtype"]
    assert found.plain.diff.is_empty


def test_an_argument_that_is_donated_saves_its_memory_and_survives():
    x = jnp.ones(1000)
    found = ex.what_if(lambda x: x * 2, x, donate=0, seconds=BRIEF)
    row = found["donate x"]
    assert row.memory["alias"] == 4000
    assert row.saved(found.plain) == 4000
    assert row.difference == Difference(0.0, 0.0)
    assert not x.is_deleted()


def test_what_is_donated_survives_where_the_plain_program_alone_compiles():
    x = jnp.ones(8)
    found = ex.what_if(jax.jit(lambda x: x + 1, donate_argnums=0), x, options={"xla_nonsense_option": 1}, seconds=BRIEF)
    assert found.variants[0].error
    assert not x.is_deleted()


def test_true_donates_what_an_output_could_be_written_over_and_nothing_else():
    def step(params, batch):
        return {"w": params["w"] - batch.sum()}, params["w"].sum()

    found = ex.what_if(step, {"w": ONES}, jnp.ones(3), donate=True, time=False)
    assert found.variants[0].name == "donate params"
    assert found.variants[0].memory["alias"] == ONES.nbytes
    assert {donation.bytes for donation in found.plain.capture.live_memory.donations} == {ONES.nbytes}


def test_each_output_takes_the_place_of_one_argument_only():
    found = ex.what_if(lambda x, y: x + y, ONES, ONES, donate=True, time=False)
    assert found.variants[0].name == "donate x"


def test_where_nothing_can_be_reused_the_row_says_so():
    found = ex.what_if(lambda x: x.sum(), ONES, donate=True, time=False)
    assert "no output has the type of an argument" in found.variants[0].error
    assert found.headline == "nothing could be tried: donating what can be reused failed"


def test_a_donation_that_is_not_usable_is_a_note_and_no_warning():
    found = ex.what_if(lambda x: x.sum(), ONES, donate=0, time=False)
    assert found["donate x"].notes == ("donated, but not reused: float32[8,8]",)


def test_what_is_donated_already_is_donated_in_every_variant():
    step = jax.jit(lambda s, g: s - g, donate_argnums=0)
    found = ex.what_if(step, ONES, ONES, precision="highest", seconds=BRIEF)
    assert [row.memory["alias"] for row in found] == [ONES.nbytes] * 2
    assert not ONES.is_deleted()


def test_static_arguments_are_constants_and_what_is_behind_them_can_be_donated():
    step = jax.jit(lambda n, s, *, rate=0.1: s * n * rate, static_argnames="n")
    found = ex.what_if(step, 2, ONES, donate=[1, "s"], rate=0.5, seconds=BRIEF)
    assert [row.memory.get("alias") for row in found] == [0, ONES.nbytes, ONES.nbytes]
    with pytest.raises(ex.errors.OptionError, match="donate has 0"):
        ex.what_if(step, 2, ONES, donate=0, time=False)


def test_arguments_by_name_are_donated_by_name():
    found = ex.what_if(lambda *, x: x + 1, x=ONES, donate="x", seconds=BRIEF)
    assert found["donate x"].memory["alias"] == ONES.nbytes


def test_rematerialisation_tells_under_a_derivative_and_says_so_where_there_is_none():
    found = ex.what_if(loss, ONES, ONES, remat=True, time=False)
    assert found["remat"].is_same
    assert "grad=True" in found["remat"].notes[0]
    found = ex.what_if(loss, ONES, ONES, remat=[True, "everything_saveable"], grad=True, seconds=BRIEF)
    assert [row.name for row in found.variants] == ["remat", "remat everything_saveable"]
    sines = [sum(node.op == "sin" for node in row.capture.jaxpr.graph.nodes) for row in found]
    assert sines == [2, 4, 2]
    assert found["remat"].difference.relative < 1e-5


def test_policies_of_ones_own_have_names_of_ones_own():
    policy = jax.checkpoint_policies.save_only_these_names("a")
    found = ex.what_if(loss, ONES, ONES, remat={"keep a": policy}, grad=True, time=False)
    assert found.variants[0].name == "keep a"
    assert not found.variants[0].error


def test_precision_reaches_the_matrix_products():
    found = ex.what_if(lambda x: x @ x, ONES, precision=["highest", "bfloat16"], time=False)
    assert "HIGHEST" in found["precision highest"].capture.stablehlo.text
    assert "HIGHEST" not in found.plain.capture.stablehlo.text


def test_dtype_casts_the_arguments_and_the_difference_is_seen():
    x = jnp.linspace(0, 1, 64).reshape(8, 8)
    found = ex.what_if(lambda x: x @ x, x, dtype="bfloat16", seconds=BRIEF)
    assert "bf16[8,8]" in found["dtype bfloat16"].capture.signature
    assert 1e-4 < found["dtype bfloat16"].difference.relative < 1e-1


def test_options_reach_the_compiler_and_a_wrong_one_is_named_with_a_near_one():
    found = ex.what_if(
        scale,
        ONES,
        ONES,
        options={"quick": {"xla_backend_optimization_level": 0}, "bad": {"xla_cpu_prefer_vector_widt": 1}},
        seconds=BRIEF,
    )
    assert found["quick"].ratio is not None
    assert not found["quick"].is_same, "of the machine code nothing is seen"
    assert "Did you mean `xla_cpu_prefer_vector_width`" in found["bad"].error
    with pytest.raises(ex.errors.NotRecordedError, match="was not compiled"):
        _ = found["bad"].diff


def test_a_plain_dict_of_options_is_one_variant():
    found = ex.what_if(scale, ONES, ONES, options={"xla_backend_optimization_level": 0}, time=False)
    assert [row.name for row in found.variants] == ["xla_backend_optimization_level=0"]


def test_together_is_the_first_of_each_kind():
    found = ex.what_if(scale, ONES, ONES, donate=["y", "x"], dtype="bfloat16", combine=True, time=False)
    row = found["together"]
    assert "bf16" in row.capture.signature
    assert row.memory["alias"] == ONES.nbytes // 2


def test_one_kind_alone_is_not_tried_together():
    found = ex.what_if(scale, ONES, ONES, donate=[0, 1], combine=True, time=False)
    assert "together" not in [row.name for row in found]


def test_with_nothing_asked_for_what_can_be_donated_is():
    found = ex.what_if(lambda x: x @ x, ONES, time=False)
    assert [row.name for row in found] == ["plain", "donate x", "precision bfloat16"]


def test_two_variants_of_one_name_are_told_apart():
    found = ex.what_if(
        scale, ONES, ONES, donate=[0, 0], options={"plain": {"xla_backend_optimization_level": 1}}, time=False
    )
    assert len({row.name for row in found}) == 4


def test_the_diff_behind_a_row_is_that_of_both_captures():
    found = ex.what_if(lambda x: jnp.tanh(x) @ x, ONES, dtype="bfloat16", time=False)
    diff = found["dtype bfloat16"].diff
    assert diff.a is found.plain.capture
    assert diff.b is found["dtype bfloat16"].capture
    assert not diff.is_empty


def test_the_same_program_is_said_to_be_the_same():
    found = ex.what_if(scale, ONES, ONES, precision="highest", time=False)
    assert found["precision highest"].is_same
    assert found["precision highest"].verdict(found.plain) == "changes nothing: the program is the same"


def test_only_plain_works_and_is_measured_alone():
    found = ex.what_if(scale, ONES, ONES, options={"bad": {"xla_nothing_of_the_kind": 1}}, seconds=BRIEF)
    assert found.plain.seconds > 0
    assert found.headline == "nothing could be tried: bad failed"


def test_results_of_random_keys_and_integers_are_compared():
    found = ex.what_if(
        lambda key: (jax.random.split(key)[0], jnp.arange(3)), jax.random.key(0), precision="high", seconds=BRIEF
    )
    assert found["precision high"].difference == Difference(0.0, 0.0)


def test_a_function_that_can_not_be_compiled_raises_as_explore_does():
    with pytest.raises(ex.errors.ExploreError, match="could not be tried"):
        ex.what_if(lambda x: x.reshape(3, 3), ONES, donate=0)


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"donate": 5}, r"donate has 5, .* it has x, y"),
        ({"donate": "xx"}, "Did you mean `x`"),
        ({"donate": -1}, "donate has -1"),
        ({"remat": "dots_savable"}, "Did you mean `dots_saveable`"),
        ({"remat": "save_only_these_names"}, "remat is save_only_these_names"),
        ({"remat": 3}, "remat is 3"),
        ({"precision": "bfloat"}, "Did you mean `bfloat16`"),
        ({"precision": 16}, "precision is 16"),
        ({"dtype": "int8"}, "int8 is no such dtype"),
        ({"options": 3}, "options is 3"),
        ({"options": {}}, "options is none"),
        ({"donate": []}, "nothing to try"),
        ({"donate": 0, "seconds": -1}, "seconds is -1"),
    ],
)
def test_what_can_not_be_done_is_refused_with_what_can(asked, told):
    with pytest.raises(ex.errors.OptionError, match=told):
        ex.what_if(scale, ONES, ONES, **asked)


def test_what_is_no_function_is_refused():
    with pytest.raises(ex.errors.NotCallableError, match="takes a function"):
        ex.what_if(ONES)


@given(arrays.arrays(np.float32, (4,), elements=st.floats(-1e3, 1e3, width=32)), st.floats(-10, 10, width=32))
def test_a_difference_is_the_largest_one(values, more):
    other = values.copy()
    other[2] += np.float32(more)
    found = difference_of([jnp.asarray(other)], [jnp.asarray(values)])
    expected = abs(float(other[2]) - float(values[2]))
    assert found.absolute == pytest.approx(expected)
    if expected and np.abs(values).max():
        assert found.relative == pytest.approx(expected / float(np.abs(values).max()))


def test_nan_and_infinity_in_both_are_no_difference_and_in_one_not_comparable():
    same = [jnp.array([jnp.nan, jnp.inf, 1.0])]
    assert difference_of(same, same) == Difference(0.0, 0.0)
    assert str(difference_of([jnp.array([jnp.nan])], [jnp.array([1.0])])) == "not comparable"
    assert math.isnan(difference_of([jnp.ones(2)], [jnp.ones(3)]).absolute)
    assert math.isnan(difference_of([jnp.ones(2)], []).absolute)


def variant(name, seconds, ratio=None, size=12e6, **more):
    samples = Samples((seconds,) * 40)
    kind = "plain" if ratio is None else "donate"
    low_high = None if ratio is None else Ratio(name, *ratio)
    stages = {"trace": 0.0, "lower": 0.0, "compile": 0.1}
    return Variant(
        name, kind, f"donating {name}", steady=samples, ratio=low_high, memory={"temp": int(size)}, stages=stages,
        kernels=4, **more,
    )  # fmt: skip


PLAIN = variant("plain", 1e-3)
WON = variant("x", 0.88e-3, (0.88, 0.86, 0.9), 8e6, difference=Difference(0.0, 0.0))
LOST = variant("y", 1.2e-3, (1.2, 1.1, 1.3), 8e6)
SAME = variant("z", 1e-3, (1.0, 0.99, 1.02), difference=Difference(1e-3, 2e-3))
SLOW = variant("slow", 3e-3, (3.0, 2.9, 3.1))
BROKEN = Variant("bad", "options", "bad", error="JaxRuntimeError: <no> such & option")


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (WON, "saves 4.0 MB of memory and 12 % of time (10 … 14 %)"),
        (LOST, "saves 4.0 MB of memory, but costs 20 % of time (10 … 30 %)"),
        (
            SAME,
            "makes no measurable difference to the time (0.99 … 1.02×) (results differ by 2.0e-03 of the largest)",
        ),
        (SLOW, "costs 3.0× the time (2.9 … 3.1×)"),
        (BROKEN, "failed: JaxRuntimeError: <no> such & option"),
    ],
)
def test_a_verdict_says_what_a_variant_brings(row, said):
    assert row.verdict(PLAIN) == said


def test_the_headline_names_what_is_worth_doing_the_most_first():
    found = WhatIf("f", "(x)", [PLAIN, LOST, WON, SAME])
    assert found.headline == (
        "donating x saves 4.0 MB of memory and 12 % of time (10 … 14 %); "
        "donating y saves 4.0 MB of memory, but costs 20 % of time (10 … 30 %)"
    )
    assert WhatIf("f", "", [PLAIN, SAME, SLOW]).headline == "no variant measurably saves time or memory"
    wide = variant("w", 1e-3, (1.0, 0.7, 1.3))
    assert WhatIf("f", "", [PLAIN, wide]).headline.endswith("; up to 30 % less time could be hidden in the noise")


def test_a_row_is_found_by_name_and_a_wrong_name_is_told_the_right_one():
    found = WhatIf("f", "", [PLAIN, WON])
    assert found["x"] is WON
    with pytest.raises(KeyError, match="Did you mean `plain`"):
        found["plian"]


def test_the_text_is_a_table_with_ratios_errors_and_notes():
    told = repr(WhatIf("f", "", [PLAIN, WON, BROKEN], ["the machine is busy"])).splitlines()
    assert told[0].startswith("WhatIf(f: donating x saves")
    assert "0.88× (0.86 … 0.90)" in told[3]
    assert told[-2:] == ["  bad: JaxRuntimeError: <no> such & option", "  note: the machine is busy"]


def test_the_table_has_ratios_and_figures():
    pytest.importorskip("pandas")
    frame = WhatIf("f", "", [PLAIN, WON, BROKEN]).to_frame()
    assert frame["ratio"].tolist()[1] == 0.88
    assert {"variant", "kind", "relative", "same", "seconds", "peak", "kernels", "error"} <= set(frame.columns)


WHAT_IFS = {
    "all": WhatIf("<lambda>", "(x)", [PLAIN, WON, LOST, SAME, SLOW, BROKEN], ["busy"], {"device": "cpu", "jax": "0"}),
    "only plain": WhatIf("f", "", [PLAIN]),
    "all failed": WhatIf("f", "", [PLAIN, BROKEN]),
    "not timed": WhatIf("f", "", [Variant("plain", "plain", ""), Variant("x", "donate", "donating x")]),
}


@pytest.mark.parametrize("name", WHAT_IFS)
def test_every_what_if_has_a_picture_that_is_xml_and_a_disclosure_a_row(name):
    found = WHAT_IFS[name]
    told = " ".join(ElementTree.fromstring(svg_of(figure(found))).itertext())
    assert all(row.name in told for row in found)
    bundle = found._repr_mimebundle_()
    assert bundle["text/html"].count("<details>") == len(found.variants) + 1
    assert "<script" not in bundle["text/html"]


@pytest.mark.parametrize("name", WHAT_IFS)
def test_every_what_if_has_a_chart(name):
    pytest.importorskip("plotly")
    assert WHAT_IFS[name].chart().bundle["application/vnd.plotly.v1+json"]["layout"]["annotations"]


def test_behind_a_row_stands_what_the_compiler_did_otherwise():
    found = ex.what_if(lambda x: jnp.tanh(x) @ x, ONES, dtype="bfloat16", time=False)
    shown = WhatIfView().html(found)
    assert "bf16[8,8]" in shown
    assert "<th>plain</th><th>dtype bfloat16</th>" in shown
    assert "&lt;no&gt; such &amp; option" in WhatIfView().html(WHAT_IFS["all failed"])


def test_the_page_is_whole(tmp_path):
    page = WHAT_IFS["all"].to_html(tmp_path / "page.html").read_text()
    assert page.startswith("<!doctype html>")
    assert "saves 4.0 MB of memory and 12 % of time (10 … 14 %)" in page


@given(st.lists(st.tuples(st.floats(0.01, 100), st.floats(1, 50)), min_size=1, max_size=5))
def test_the_axis_holds_every_ratio_and_has_one_in_it(pairs):
    rows = [variant(str(i), 1.0, (ratio, ratio / reach, ratio * reach)) for i, (ratio, reach) in enumerate(pairs)]
    scale = time_scale(WhatIf("f", "", [PLAIN, *rows]))
    assert all(scale.low < ratio < scale.high for ratio, _ in pairs)
    assert 1 in scale.ticks
    places = [scale.at(tick, 0, 208) for tick in scale.ticks]
    assert all(b - a > 40 for a, b in pairwise(places))
