"""The comparison with other libraries: that each computes the same, and that the page says what was measured."""

import json
import re
from datetime import date
from xml.etree import ElementTree

import numpy as np
import pytest

from tests.benchmarks.peers import chart, explain, figures, report
from tests.benchmarks.peers.__main__ import claims, run
from tests.benchmarks.peers.driver import Measured, Plan
from tests.benchmarks.peers.units import seconds, times
from tests.benchmarks.peers.workloads import QUICK, WORKLOADS, Workload, error

pytestmark = pytest.mark.slow

SMALL = [one for one in QUICK.values() if max(np.prod(shape) for shape in one.shapes) < 300_000]
VARIANTS = ("jax", "jax.jit", "ex.jit", "ex.compile", "ex.compile, tuned")
FAST = "ex.compile"


@pytest.fixture(scope="module")
def kept():
    return report.read()


def row(name="gelu-small", **samples):
    """Figures of a workload as measured, with these samples."""
    given = {variant.replace("_", "."): taken for variant, taken in samples.items()}
    ones = dict.fromkeys(given, 1)
    return figures.workload(Measured(WORKLOADS[name], given, ones, dict.fromkeys(given, 0.0)))


def run_of(*rows, **more):
    machine = {"processor": "P", "cores": 2, "memory": "8 GiB", "system": "S", "date": "2030-01-02", "python": "3.11"}
    given = {"machine": machine, "versions": {"jax": "1"}, "quick": False, "skipped": {}, "workloads": list(rows)}
    return given | more


@pytest.mark.parametrize(
    "variant", [FAST, *(pytest.param(one, marks=pytest.mark.slow) for one in VARIANTS if one != FAST)]
)
@pytest.mark.parametrize("workload", SMALL, ids=lambda one: one.name)
def test_jax_computes_what_numpy_does_in_every_variant(workload: Workload, variant: str):
    from tests.benchmarks.peers import in_jax

    inputs = workload.inputs()
    call = in_jax.ready(variant, workload, inputs)
    results = [call() for _ in range(workload.steps)]
    assert error(in_jax.values(results[-1]), workload.reference(inputs)) <= workload.tolerance


def test_a_wrong_result_is_seen():
    workload = QUICK["mlp"]
    inputs = workload.inputs()
    right = workload.reference(inputs)
    assert error(right, right) == 0
    assert error([right[0] * 1.01, *right[1:]], right) > workload.tolerance
    assert error([right[0] * np.nan, *right[1:]], right) == float("inf")
    assert error(right[:1], right) == float("inf")
    one_less = Workload("", "mlp", "", "", workload.shapes, steps=2).reference(inputs)
    assert error(one_less, right) > workload.tolerance, "a step that keeps no state would go unseen"


def test_the_full_run_has_the_sizes_of_the_guides():
    assert WORKLOADS["gelu-large"].shapes == ((32, 1000, 4096),)
    assert WORKLOADS["mlp"].shapes[2] == (784, 256)
    assert WORKLOADS.keys() == QUICK.keys()


def test_the_page_has_the_table_of_the_kept_run_byte_for_byte(kept):
    page = report.PAGE.read_text(encoding="utf-8")
    assert report.with_table(page, kept) == page


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_pictures_are_of_the_kept_run_byte_for_byte(kept, theme):
    picture = chart.drawn(kept, theme)
    assert report.PICTURES[theme].read_text(encoding="utf-8") == picture
    marks = ElementTree.fromstring(picture).findall(".//{*}circle") + ElementTree.fromstring(picture).findall(
        ".//{*}rect"
    )
    shown = sum(
        one in row["seconds"] for row in kept["workloads"] if "ex.compile" in row["seconds"] for one in chart.SHOWN
    )
    assert len(marks) == shown + len(chart.SHOWN), "each measured variant, and the legend"


def test_the_kept_run_is_written_as_a_run_writes_it(kept, tmp_path):
    report.write(kept, tmp_path / "peers.json")
    assert (tmp_path / "peers.json").read_bytes() == report.JSON.read_bytes()


def test_the_kept_run_names_its_machine_its_date_and_what_was_measured(kept):
    machine = kept["machine"]
    assert machine["cores"] >= 1
    assert machine["processor"]
    assert date.fromisoformat(machine["date"]) >= date(2026, 1, 1)
    assert {"jax", "jaxlib", "explorer", "torch", "mlx"} <= kept["versions"].keys() | kept["skipped"].keys()
    measured = {one["name"] for one in kept["workloads"]}
    assert set(WORKLOADS) <= measured
    assert any(name.startswith("first-") for name in measured)


def test_the_kept_run_names_nobody_s_machine():
    import platform

    assert platform.node() not in json.dumps(report.read()["machine"])


def test_a_ratio_compares_samples_of_one_round():
    drifting = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0]
    told = row(ex_compile=[one / 2 for one in drifting], jax=drifting)
    middle, low, high = figures.ratio(told, "ex.compile", "jax")
    assert middle == 0.5
    assert 0.49 < low <= middle <= high < 0.51
    assert figures.ratio(told, "ex.compile", "torch") is None


def test_the_table_marks_the_fastest_and_what_cannot_be_told_from_it():
    told = row(jax=[3.0] * 9, ex_compile=[1.0] * 9, jax_jit=[0.9, 0.95, 1.0, 1.05, 1.1, 1.0, 1.0, 1.02, 1.2])
    line = next(one for one in report.table(run_of(told)).splitlines() if one.startswith("| gelu"))
    assert line == "| gelu, 32×128 | 3.00 s | **1.00 s** | **1.00 s** |"


def test_what_failed_and_what_was_left_out_is_said():
    told = row(jax=[3.0] * 9, ex_compile=[1.0] * 9) | {"failed": {"torch": "OSError: broken"}}
    table = report.table(run_of(told, row("add", torch=[1.0] * 9), skipped={"mlx": "it can't be imported"}))
    assert "| failed |" in table
    assert "`torch` failed at *gelu, 32×128*: OSError: broken." in table
    assert "Left out: mlx, because it can't be imported." in table


def test_a_sentence_is_there_only_if_the_figures_bear_it_out():
    slow = run_of(row("matmul-relu", jax=[1.0] * 9, ex_compile=[0.95] * 9))
    fast = run_of(row("matmul-relu", jax=[1.0] * 9, ex_compile=[0.5] * 9))
    assert "the product is nearly all of the work" in "\n".join(explain.sentences(slow))
    assert "the product is nearly all of the work" not in "\n".join(explain.sentences(fast))


def test_claims_hold_only_at_the_unfavourable_end_of_the_interval(capsys):
    given = {"jax": [4.0] * 9, "ex_compile": [1.0] * 9, "mlx_compile": [9.0] * 9}
    steady = row("gelu-large", **given, torch_compile=[1.1] * 9)
    noisy = row("gelu-large", **given, torch_compile=[1.1, 0.9] * 4 + [1.1])
    assert claims(run_of(steady))
    assert "MISSED" not in capsys.readouterr().out
    assert not claims(run_of(noisy))
    assert re.search(r"torch\.compile.*MISSED", capsys.readouterr().out)


def test_a_readme_without_markers_is_refused():
    with pytest.raises(ValueError, match="no <!-- peers -->"):
        report.with_table("# Explorer\n", run_of())


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (4.41e-6, "4.41 µs"),
        (0.0725, "72.5 ms"),
        (18.1, "18.1 s"),
        (0.9996e-3, "1.00 ms"),
        (3e-9, "3.00 ns"),
        (181, "181 s"),
    ],
)
def test_seconds_are_shown_in_the_unit_that_fits(value, shown):
    assert seconds(value) == shown


def test_ratios_are_shown_with_the_digits_that_matter():
    assert [times(one) for one in (0.816, 3.44, 12.4)] == ["0.82×", "3.4×", "12×"]


@pytest.mark.slow
def test_a_run_measures_each_variant_in_turns_in_its_own_process_and_says_who_is_missing():
    plan = Plan(quick=True, sample=0.001, seconds=0.1, rounds=(3, 3), starts=1, first=("add",))
    found = run(plan, ["gelu-small", "mlp"], libraries=("jax", "jax_tuned", "nowhere"))
    assert found["skipped"] == {"nowhere": "nowhere can't be imported in this environment"}
    gelu, mlp, first = found["workloads"]
    for one in (gelu, mlp):
        assert set(VARIANTS) == one["seconds"].keys()
        assert all(len(told["samples"]) == 3 for told in one["seconds"].values())
        assert not one["failed"]
    assert first["name"] == "first-add"
    assert all(told["median"] > 0 for told in first["seconds"].values())
    json.dumps(found)
