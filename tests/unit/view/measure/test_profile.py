"""A profile's views without a browser: flame graphs, HTML that stands alone, the message to the page, text, chart."""

from __future__ import annotations

import base64
import gc
import gzip
import json
import linecache
import re
import weakref
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from html.parser import HTMLParser

import jax
import jax.numpy as jnp
import pytest
from hypothesis import given
from hypothesis import strategies as st

import explorer as ex
from explorer._jax.traces import uncached_traces
from explorer.analysis.line_costs import line_parts
from explorer.analysis.profile_trees import flame
from explorer.model.graph import Frame
from explorer.model.results.profile import Profile
from explorer.model.results.profile_events import By, Flame
from explorer.model.units import duration_text, fine_share_text
from explorer.view import session
from explorer.view.chart import PLOTLY
from explorer.view.measure.profile import fragment, html_of_program, message, packed, static
from explorer.view.measure.profile.chart import flame_picture
from explorer.view.measure.profile.picture import headline, picture, plain
from tests.examples.profiles import ops_of, profile_of


def looped(x, w):
    def body(carry, _):
        with jax.named_scope("layer"):
            return jnp.tanh(carry @ w), carry.sum()

    with jax.named_scope("loop"):
        x, sums = jax.lax.scan(body, x, None, length=4)
    return x, jnp.sort(sums)


@pytest.fixture(scope="module")
def profile() -> Profile:
    with uncached_traces():  # what JAX traced of its own functions in other tests has their lines
        return profile_of(ex.explore(looped, jnp.ones((64, 64)), jnp.ones((64, 64))), gap=0.3)


@pytest.fixture(scope="module")
def several() -> Profile:
    captures = [ex.explore(f, jnp.ones((64, 64))) for f in (jnp.tanh, lambda x: jnp.sin(x) @ x)]
    return profile_of(*captures)


# Flame graphs ---------------------------------------------------------------------------------------------------------

MAIN = Frame("/home/ada/train.py", "main", 3)
STEP = Frame("/home/ada/train.py", "step", 7)
FLAX = Frame("/usr/lib/python3/site-packages/flax/linen/dense.py", "__call__", 40)
FLAX_CORE = Frame("/usr/lib/python3/site-packages/flax/core.py", "apply", 9)
RUNNER = Frame("/usr/lib/python3.11/runpy.py", "run", 1)

names = st.text("abc/;\n ", min_size=1, max_size=6)
frames = st.builds(Frame, st.sampled_from([MAIN.file, FLAX.file, RUNNER.file, "/a.py"]), names, st.integers(1, 3))
rows = st.lists(st.tuples(names, st.floats(0, 1e3), names, st.lists(frames, max_size=4).map(tuple)), max_size=30)


def tree(made: Flame) -> dict[str, float]:
    return {" > ".join(made.path(i)): round(node.seconds, 9) for i, node in enumerate(made.nodes)}


def test_by_scope_a_box_has_the_time_of_all_inside_it():
    made = flame(ops_of([("dot", 3, "net/attention", ()), ("add", 1, "net", ()), ("copy", 2, "", ())]), "scope", "f")
    assert tree(made) == {
        "f": 6,
        "f > net": 4,
        "f > net > attention": 3,
        "f > net > attention > dot": 3,
        "f > net > add": 1,
        "f > no named scope": 2,
        "f > no named scope > copy": 2,
    }


def test_by_stack_the_outermost_call_is_on_top_and_what_a_library_does_is_one_box():
    ops = ops_of(
        [("dot", 3, "", (FLAX_CORE, FLAX, STEP, MAIN, RUNNER)), ("add", 1, "", (STEP, MAIN)), ("x", 1, "", ())]
    )
    assert tree(flame(ops, "stack", "f", {MAIN.file: "cell [4]"})) == {
        "f": 5,
        "f > main (cell [4]:3)": 4,
        "f > main (cell [4]:3) > step (cell [4]:7)": 4,
        "f > main (cell [4]:3) > step (cell [4]:7) > flax": 3,
        "f > main (cell [4]:3) > step (cell [4]:7) > flax > dot": 3,
        "f > main (cell [4]:3) > step (cell [4]:7) > add": 1,
        "f > no line is known": 1,
        "f > no line is known > x": 1,
    }


def test_several_executables_are_boxes_of_their_own_and_those_of_one_name_are_numbered():
    ops = [*ops_of([("dot", 1, "", ())], 1), *ops_of([("dot", 2, "", ())], 2)]
    assert [node.name for node in flame(ops, "scope", "f").nodes if node.kind == "module"] == ["jit_f #2", "jit_f #1"]


def test_a_flame_graph_by_anything_else_is_refused(profile: Profile):
    with pytest.raises(ValueError, match=r"'scope' or 'stack', not 'colour'"):
        profile.flame("colour")  # pyright: ignore[reportArgumentType]


@given(rows, st.sampled_from(["scope", "stack"]), st.integers(1, 8))
def test_boxes_have_the_sum_of_what_is_inside_also_when_small_ones_are_put_together(
    rows: list[tuple[str, float, str, tuple[Frame, ...]]], by: By, most: int
):
    made = flame(ops_of(rows), by, "f")
    whole = sum(seconds for _, seconds, _, _ in rows)
    for one in (made, made.pruned(most)):
        assert one.seconds == pytest.approx(whole)
        assert sum(node.own for node in one.nodes) == pytest.approx(whole)
        for i, node in enumerate(one.nodes):
            inside = sum(one.nodes[k].seconds for k in one.children[i])
            assert node.seconds == pytest.approx(node.own + inside)
            assert node.parent < i
    kept = made.pruned(most)
    assert sum(node.kind != "more" for node in kept.nodes) == min(len(made), most)
    stacked = sum(node.count for node in kept.nodes if node.kind == "more")
    assert stacked <= len(made) - most or not stacked


@given(rows, st.sampled_from(["scope", "stack"]))
def test_folded_stacks_are_one_line_each_and_sum_to_the_whole(
    rows: list[tuple[str, float, str, tuple[Frame, ...]]], by: By
):
    lines = flame(ops_of(rows), by, "f").to_folded().splitlines()
    # What speedscope and flamegraph.pl read: names between semicolons, a blank, a whole number.
    found = [re.fullmatch(r"(f(?:;[^;\n]+)+) (\d+)", line) for line in lines]
    assert all(found)
    total = sum(int(one[2]) for one in found if one)
    assert total == pytest.approx(1e9 * sum(seconds for _, seconds, _, _ in rows), abs=len(rows))


@pytest.mark.parametrize("by", ["scope", "stack"])
def test_both_flame_graphs_sum_to_the_devices_time(profile: Profile, by: By):
    made = profile.flame(by)
    assert made.seconds == pytest.approx(profile.device_seconds)
    own = [0.0] * len(profile.ops)
    for node in made.nodes:
        if node.kind == "kernel":
            own[node.op] += node.own
    assert own == pytest.approx([op.seconds for op in profile.ops])


def test_what_was_really_measured_adds_up_in_every_part_of_the_view():
    real = ex.profile(jax.jit(looped), jnp.ones((64, 64)), jnp.ones((64, 64)), runs=3)
    said = message(real)
    for by in ("scope", "stack"):
        assert real.flame(by).seconds == pytest.approx(real.device_seconds)
        assert said["flames"][by]["seconds"][0] == pytest.approx(real.device_seconds, rel=1e-4)
    assert sum(row[3] for row in said["lines"]) + real.unattributed == pytest.approx(real.device_seconds, rel=1e-3)
    assert sum(row[4] for row in said["kernels"]) == pytest.approx(real.device_seconds, rel=1e-3)
    timeline = said["timeline"]
    assert len(timeline["start"]) == len(timeline["kernel"]) > 0
    longest = 1.0001 * timeline["seconds"]  # times are rounded on the way to the page
    assert all(0 <= start <= end <= longest for start, end in zip(timeline["start"], timeline["end"], strict=True))


def test_a_kernel_of_several_lines_and_scopes_is_in_the_box_of_each_with_its_part():
    def both(x):
        with jax.named_scope("first"):
            y = jnp.sin(x) * 2
        with jax.named_scope("second"):
            return jnp.cos(y) + x

    fused = profile_of(ex.explore(both, jnp.ones((64, 64))))
    [op] = fused.ops
    lines = {line.text: line.seconds for line in fused.lines}
    for by, names in (("stack", lines), ("scope", ("first", "second"))):
        made = fused.flame(by)
        parts = [node for node in made.nodes if node.kind == "kernel" and node.op == 0]
        assert len(parts) == 2 == len(names)
        assert sum(node.own for node in parts) == pytest.approx(op.seconds)
    own = sorted(node.own for node in fused.flame("stack").nodes if node.kind == "kernel")
    assert own == pytest.approx(sorted(lines.values()))


def test_a_loops_body_hangs_below_the_line_that_made_the_loop(profile: Profile):
    made = profile.flame("stack")
    [body] = [i for i, node in enumerate(made.nodes) if "body" in node.name]
    scan = made.nodes[body].parent
    frame = made.nodes[scan].frame
    assert frame is not None
    assert linecache.getline(frame.file, frame.line).strip().startswith("x, sums = jax.lax.scan(")
    assert made.nodes[scan].seconds > profile.device_seconds / 2


def test_by_scope_the_gradient_is_told_from_what_it_is_of_and_from_the_update():
    def step(w, x):
        loss, gradient = jax.value_and_grad(lambda w: jnp.sort(jnp.tanh(x @ w), 0).sum())(w)
        return jnp.sort(w - 0.1 * gradient, 0), loss

    trained = profile_of(ex.explore(step, jnp.ones((64, 64)), jnp.ones((64, 64))))
    outer = [node for node in trained.flame("scope").nodes if node.parent == 0]
    assert {node.name for node in outer} == {"forward", "backward", "update"}


# The message ----------------------------------------------------------------------------------------------------------


def test_what_lines_have_of_kernels_is_the_lines_time_and_the_kernels(profile: Profile):
    said = message(profile)
    for at, line in enumerate(said["lines"]):
        parts = sum(seconds for _, its, seconds in said["parts"] if its == at)
        assert parts == pytest.approx(line[3], rel=5e-3)
    lines = profile.device_seconds - profile.unattributed
    assert sum(seconds for _, _, seconds in said["parts"]) == pytest.approx(lines, rel=5e-3)


def test_the_parts_of_a_capture_are_its_lines(profile: Profile):
    [capture] = profile.captures.values()
    found: dict[tuple[str, int], float] = {}
    for _, file, line, seconds in line_parts(capture):
        found[file, line] = found.get((file, line), 0.0) + seconds
    assert found == pytest.approx({(row.file, row.line): row.seconds for row in capture.lines() if row.seconds})


def test_a_capture_without_times_has_no_parts():
    assert not list(line_parts(ex.explore(jnp.tanh, jnp.ones(8))))


def test_a_hot_line_is_shown_with_the_head_of_its_function_and_what_is_around_it(profile: Profile):
    [file] = message(profile)["files"]
    shown = {text.strip() for _, text in file["rows"]}
    assert {"def looped(x, w):", "def body(carry, _):", "return jnp.tanh(carry @ w), carry.sum()"} <= shown
    assert "MAIN = Frame(" not in " ".join(shown)


# fmt: off
def nested(x):
    def product(y):
        a = jnp.sin(y)
        b = jnp.cos(a)
        c = jnp.tan(b)
        d = jnp.exp(c)
        return d @ y
    return product(x)
# fmt: on


def test_the_head_of_a_function_is_found_from_its_last_line_too():
    made = profile_of(ex.explore(nested, jnp.ones((64, 64))))
    hottest = [line for line in made.lines if line.text.strip() == "return d @ y"]
    [file] = message(replace(made, lines=hottest))["files"]
    shown = [text.strip() for _, text in file["rows"]]
    assert shown[:3] == ["def nested(x):", "def product(y):", "b = jnp.cos(a)"]


def test_the_message_survives_the_way_to_the_page_whatever_the_numbers(several: Profile):
    read = json.loads(gzip.decompress(packed(message(several))))
    assert len(read["kernels"]) == len(several.ops)
    assert {module for _, _, module, *_ in read["kernels"]} == {op.module for op in several.ops}


def test_a_very_long_line_is_cut_on_the_way_to_the_page(profile: Profile):
    wide = [replace(profile.lines[0], text="x = " + "1 + " * 50_000)]
    assert len(packed(message(replace(profile, lines=wide)))) < 10_000


# Words ----------------------------------------------------------------------------------------------------------------


def test_the_headline_names_the_hottest_line_and_says_that_the_device_waited(profile: Profile):
    said = headline(profile)
    assert re.fullmatch(
        r"looped: [\d.]+ .?s a call; \d+% of the device's time is line \d+ return jnp\.tanh\(carry @ w\), .*",
        plain(said.text),
    )
    assert re.fullmatch(r"the device waited 30% of the time: [\d.]+ .?s a call", plain(said.waits))
    assert any("without a line" in fact for fact in said.facts)


def test_the_headline_is_the_unrecorded_time_and_the_recorded_one_a_fact(profile: Profile):
    said = headline(replace(profile, plain_seconds=profile.wall_seconds / 2))
    assert f": {duration_text(profile.wall_seconds / 2)} a call" in plain(said.text)
    assert any("while recorded" in fact for fact in said.facts)
    assert not any("while recorded" in fact for fact in headline(profile).facts)


def test_lines_that_cant_be_told_apart_are_called_a_tie(profile: Profile):
    first = replace(profile.lines[0], seconds=1.0, share=0.3, low=0.9, high=1.1)
    second = replace(first, line=99, seconds=0.93, share=0.28, low=0.85, high=1.01)
    third = replace(first, line=100, seconds=0.5, share=0.15, low=0.45, high=0.55)
    tie = replace(profile, lines=[third, first, second])
    assert [line.line for line in tie.hottest] == [first.line, 99]
    assert f"a tie: lines {first.line} and 99 take 28% to 30% of the device's time each" in plain(headline(tie).text)
    clear = replace(profile, lines=[third, first])
    assert f"30% of the device's time is line {first.line}" in plain(headline(clear).text)
    many = [replace(first, line=line, share=0.2) for line in range(50, 55)]
    assert "no line dominates: 5 take 20% of the device's time each" in plain(headline(replace(tie, lines=many)).text)


def test_lines_nearer_than_5_percent_tie_however_steady_they_are(profile: Profile):
    first = replace(profile.lines[0], seconds=1.0, low=0.999, high=1.001)
    near, far = (replace(first, line=line, seconds=s, low=s, high=s) for line, s in ((98, 0.96), (99, 0.9)))
    assert [line.line for line in replace(profile, lines=[first, near, far]).hottest] == [first.line, 98]


def test_a_small_wait_is_no_headline_but_a_fact(several: Profile):
    said = headline(replace(several, gap_seconds=0.05 * several.wall_seconds))
    assert not said.waits
    assert any(fact.startswith("waiting ") for fact in said.facts)


@pytest.mark.parametrize(
    ("share", "text"), [(0.62, "62%"), (1, "100%"), (0.0994, "9.9%"), (0.012, "1.2%"), (1e-5, "<0.1%"), (0, "0%")]
)
def test_a_share_is_never_rounded_to_nothing(share: float, text: str):
    assert fine_share_text(share) == text


def test_in_a_terminal_lines_come_before_kernels(profile: Profile):
    text = profile.to_text(100)
    assert text.startswith("looped: ")
    assert text.index("jnp.tanh(carry @ w)") < text.index("fusion")
    assert max(map(len, text.splitlines())) <= 100


# HTML, picture, chart -------------------------------------------------------------------------------------------------


class Tags(HTMLParser):
    """What an HTML reader makes of a text: every tag must be closed, in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.words: list[str] = []
        self.images: list[dict[str, str | None]] = []
        self.feed(text)
        self.close()
        assert not self.open, f"not closed: {self.open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert not any(name.startswith("on") for name, _ in attrs), attrs
        if tag == "img":
            self.images.append(dict(attrs))
        else:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def test_without_scripts_a_picture_and_tables_say_the_same(profile: Profile):
    read = Tags(static(profile))
    [image] = read.images
    assert "looped" in (image["alt"] or "")
    svg = base64.b64decode((image["src"] or "").split(",")[1]).decode()
    assert "line is known" in svg or profile.unattributed == 0
    words = " ".join(read.words)
    for line in profile.lines[:5]:
        assert line.text in words
    for op in profile.ops:
        assert op.name in words
    assert "what the host did" in words


def test_the_picture_is_svg_and_shows_the_hottest_line(profile: Profile):
    drawn = ElementTree.fromstring(picture(profile, invites=True))
    said = " ".join(text.text or "" for text in drawn.iter("{http://www.w3.org/2000/svg}text"))
    assert profile.lines[0].text in said
    assert "trust the notebook" in said


def test_the_output_carries_picture_data_and_code_and_nothing_from_elsewhere(profile: Profile):
    html = fragment(profile)
    assert 'data-part="profile"' in html
    assert 'data-part="viewer"' in html
    assert not re.search(r"""(?:src|href)=["']?https?:""", html)


def test_what_is_displayed_is_html_with_text_beside(profile: Profile):
    bundle = profile._repr_mimebundle_()
    assert bundle["text/plain"] == repr(profile)
    assert bundle["text/html"] == profile._repr_html_()


def test_a_fault_of_the_view_costs_nothing(profile: Profile, monkeypatch: pytest.MonkeyPatch):
    def fail(*_: object) -> str:
        raise RuntimeError("no ink")

    monkeypatch.setattr("explorer.view.measure.profile.fragment", fail)
    assert profile._repr_mimebundle_() == {"text/plain": f"{profile!r}\n(the view failed: RuntimeError: no ink)"}


def test_a_profile_of_nothing_is_shown_too():
    empty = Profile("f", "()", 1, 1e-5, 0.0, 1e-5, [], [], 0.0)
    assert "nothing ran on the device" in plain(headline(empty).text)
    assert "nothing ran" in empty.to_text()
    assert Tags(static(empty)).images
    assert "error" not in empty._repr_mimebundle_()["text/plain"]
    assert empty.flame().to_folded() == ""


def test_names_that_look_like_markup_stay_text():
    ops = ops_of([("<script>alert(1)</script>", 1e-3, "</script><b>", (Frame("/<i>.py", "<lambda>", 1),))])
    shown = Profile("<b>f</b>", "()", 1, 1e-3, 1e-3, 0.0, ops, [], 1e-3)
    Tags(static(shown))
    assert "<b>f" not in fragment(shown)
    drawn = flame_picture(shown.flame("scope"))
    assert "<script" not in drawn
    ElementTree.fromstring(drawn)


@pytest.mark.parametrize("by", ["scope", "stack"])
def test_the_flame_chart_is_a_chart_with_a_picture_and_a_table(profile: Profile, by: By):
    pytest.importorskip("plotly")
    chart = profile.flame_chart(by)
    [trace] = chart.figure.data
    assert max(trace.values) == pytest.approx(profile.device_seconds * 1e3)
    assert trace.parents[0] == ""
    ElementTree.fromstring(chart.svg)
    [table] = chart.tables
    assert table.rows[0][0] == "looped"
    assert PLOTLY in chart._repr_mimebundle_()


def test_the_flame_chart_of_nothing_is_a_chart():
    pytest.importorskip("plotly")
    ElementTree.fromstring(Profile("f", "()", 1, 1e-5, 0.0, 1e-5, [], [], 0.0).flame_chart().svg)


def test_the_page_stands_alone(profile: Profile, tmp_path):
    page = profile.to_html(tmp_path / "profile.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert "looped profiled" in page


# The wire -------------------------------------------------------------------------------------------------------------


def test_a_click_is_answered_with_the_capture_or_with_why_there_is_none(profile: Profile):
    [program] = profile.captures
    assert 'data-part="capture"' in html_of_program(profile, program)["html"]
    assert "not kept" in html_of_program(profile, 7)["failed"]


def test_a_display_does_not_keep_the_profile_and_answers_that_it_is_gone(monkeypatch):
    monkeypatch.setattr("explorer.view.measure.profile.in_kernel", lambda: True)
    wires = []
    open_wire = session.open_wire

    def opened(name):
        wires.append(open_wire(name))
        return wires[-1]

    monkeypatch.setattr("explorer.view.measure.profile.open_wire", opened)
    profile = profile_of(ex.explore(jnp.tanh, jnp.ones(3)))
    alive = weakref.ref(profile)
    assert "text/html" in profile._repr_mimebundle_()
    del profile
    gc.collect()
    assert alive() is None
    sent = []
    monkeypatch.setattr(type(wires[0]), "send", lambda _, message: sent.append(message))
    wires[0]._handle_custom_msg({"ask": "capture", "of": 3, "program": 1}, [])
    assert sent == [{"of": 3, "failed": "This profile is gone: run its cell again."}]


# Size -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [4_000, pytest.param(95_513, marks=pytest.mark.slow)])
def test_a_profile_of_very_many_instructions_is_bounded_and_says_what_is_left_out(count: int):
    stack = tuple(Frame("/home/ada/deep.py", f"f{i}", i) for i in range(1, 6))
    ops = ops_of([(f"fusion.{i}", 1e-6 * (1 + i % 7), f"net/layer{i % 90}", stack[i % 5 :]) for i in range(count)])
    device = sum(op.seconds for op in ops)
    many = Profile("step", "()", 1, device, device, 0.0, ops, [], device)
    said = message(many)
    assert said["moreKernels"][0] == count - len(said["kernels"]) > 0
    assert sum(row[4] for row in said["kernels"]) + said["moreKernels"][1] == pytest.approx(device)
    assert all(len(boxes["parent"]) < 4_000 for boxes in said["flames"].values())
    assert len(packed(said)) < 100_000
    assert f"and {count - 100:,} more" in static(many)
