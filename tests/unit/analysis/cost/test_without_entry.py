"""A module without an ENTRY computation: which of its computations run is unknown, and so is all that follows."""

import math

import pytest

import explorer as ex

MODULE = """HloModule jit_f, is_scheduled=true, num_partitions=2

%add (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %s = f32[] add(%a, %b)
}

ENTRY %main (x: f32[64,64], y: f32[64,64]) -> f32[64,64] {
  %x = f32[64,64] parameter(0)
  %y = f32[64,64] parameter(1)
  %d = f32[64,64] dot(%x, %y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT %ar = f32[64,64] all-reduce(%d), replica_groups={{0,1}}, to_apply=%add
}
"""
OF_THE_PROGRAM = [
    "how many flops?",
    "is it memory bound?",
    "what is slow?",
    "what is the largest buffer?",
    "was donation used?",
    "which collectives are there?",
    "what is gathered?",
    "is the mask in memory?",
    "how many kernels are there?",
    "what are the shapes of the arguments?",
]


@pytest.fixture(scope="module")
def cut() -> ex.Capture:
    return ex.open_hlo(MODULE.replace("ENTRY ", ""))


def test_with_an_entry_its_costs_are_those_of_one_call() -> None:
    whole = ex.open_hlo(MODULE)
    assert whole.cost["flops"] == 2 * 64**3 + 64**2
    assert len(whole.collectives) == 1
    assert whole.live_memory.peak > 0


def test_without_it_no_cost_is_stated(cut: ex.Capture) -> None:
    assert dict(cut.cost) == {}
    assert math.isnan(cut.lines().flops)
    assert math.isnan(cut.lines().bytes)
    assert all(math.isnan(value) for value in cut.hlo.graph.measures["flops"])
    assert "no ENTRY computation" in repr(cut.lines())
    assert "unknown" in repr(cut.lines())


@pytest.mark.parametrize("column", ["live_memory", "collectives"])
def test_without_it_memory_and_collectives_are_refused_with_the_reason(cut: ex.Capture, column: str) -> None:
    with pytest.raises(ex.errors.NotRecordedError, match="no ENTRY computation"):
        getattr(cut, column)


def test_without_it_the_summary_says_so_and_nothing_else(cut: ex.Capture) -> None:
    assert [fact.text for fact in cut.summary] == [
        "The module has no ENTRY computation: what runs, its cost, memory and collectives are unknown."
    ]


def test_without_it_the_text_has_no_share_of_a_cost(cut: ex.Capture) -> None:
    assert "of bytes" not in cut.to_text()
    assert "2 kernels" not in cut.to_text()
    assert "no ENTRY computation" in cut.to_text()


@pytest.mark.parametrize("question", OF_THE_PROGRAM)
def test_without_it_a_question_about_the_program_is_answered_with_unknown(cut: ex.Capture, question: str) -> None:
    answer = cut.ask(question)
    assert answer.certainty == "unknown"
    assert "no ENTRY computation" in answer.text


def test_without_it_a_page_still_opens(cut: ex.Capture) -> None:
    assert "no ENTRY computation" in cut._repr_html_()  # type: ignore[attr-defined]
