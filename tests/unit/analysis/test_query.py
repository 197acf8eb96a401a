"""What a query finds: the same cases as the search field of the view, which has a reader of its own."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import explorer as ex
from explorer.analysis.query import find
from explorer.capture.readers.graph_builder import GraphBuilder
from explorer.model.attributes import Attributes, tabulate
from explorer.model.graph import Frame, Group
from explorer.model.types import bytes_of, elements, parse_type

SHARED = json.loads((Path(ex.__file__).parent / "view/js/test/queries.json").read_text(encoding="utf-8"))


def graph_of(known):
    builder = GraphBuilder()
    for group in known["groups"]:
        builder.add_group(Group(**group))
    for frame in known["frames"]:
        builder.add_frame(Frame(**frame))
    for i, name in enumerate(known["names"]):
        builder.add(
            name,
            known["ops"][known["op"][i]],
            known["types"][known["type"][i]],
            scope=known["scopes"][known["scope"][i]],
            group=known["group"][i],
            frame=known["frame"][i],
        )
        builder.connect(known["operands"][i])
    measures = {name: np.asarray(values, float) for name, values in known["measures"].items()}  # None is NaN
    rows = [tuple(known["attributes"].get(name, {}).items()) for name in known["names"]]
    attributes = Attributes(lambda: tabulate(range(len(rows)), rows))
    return replace(builder.build(attributes), measure=lambda _: measures)


GRAPH = graph_of(SHARED["graph"])


@pytest.mark.parametrize(("query", "names"), SHARED["cases"])
def test_a_query_finds(query, names):
    assert [node.name for node in GRAPH.where(query)] == names


def test_the_view_is_given_the_same_lines():
    attribution = GRAPH.attribution
    assert SHARED["graph"]["places"] == [
        {"file": place.file, "line": place.line, "function": place.function} for place in attribution.places
    ]
    assert SHARED["graph"]["attribution"] == {
        name: getattr(attribution, name).tolist() for name in SHARED["graph"]["attribution"]
    }


@pytest.mark.parametrize("query", SHARED["faults"])
def test_a_query_that_can_not_be_read_is_refused_with_a_hint(query):
    with pytest.raises(ex.errors.QueryError, match=r"this query can't be (read|answered): (?s:.*)Hint: ") as caught:
        GRAPH.where(query)
    assert query in str(caught.value)


def test_the_refusal_points_at_the_place():
    with pytest.raises(ex.errors.QueryError) as caught:
        GRAPH.where("op:dot bytes > many")
    assert str(caught.value) == (
        "this query can't be read: `bytes` is a number, and 'many' is none.\n"
        "  op:dot bytes > many\n"
        "         ^\n"
        '  Hint: write `op:dot`, `bytes > 1MB and op == "copy"`, `line:12`, `/regex/`.'
    )


@given(st.text(alphabet="ab:(/)\"'<>=!-. \t0KM", max_size=20))
def test_any_text_is_a_query_or_refused(query):
    try:
        found = find(GRAPH, query)
    except ex.errors.QueryError:
        return
    assert (np.diff(found) > 0).all()


@pytest.mark.parametrize(
    "query",
    [
        "(" * 5_000,
        "(" * 5_000 + "a" + ")" * 5_000,
        "not " * 2_000 + "a",
        "-" * 5_000 + "a",
        "/a{4294967296}/",
        "/" + "(" * 3_000 + ")" * 3_000 + "/",
        "line:" + "9" * 5_000,
        "through == 10-" + "9" * 5_000,
        "x" * 9_000 + " == 1",
        "bytes > " + "x" * 9_000,
        "a or " * 100_000 + "a",
    ],
)
def test_a_query_that_takes_more_than_its_size_is_refused_in_a_few_words(query):
    with pytest.raises(ex.errors.QueryError) as caught:
        GRAPH.where(query)
    assert len(str(caught.value)) < 1_500


def test_a_number_past_any_float_is_compared():
    assert not len(find(GRAPH, f"bytes > {'9' * 5_000}"))
    assert not len(find(GRAPH, "bytes > 1e300"))


@pytest.mark.parametrize(
    "text",
    [
        f"f32[{'9' * 5_000}]",
        "f32[" + "1," * 3_000 + "1]",
        "f32[" + "99999," * 30 + "1]",
        "tensor<" + "99999x" * 30 + "f32>",
        "f32[2]{0:T(" + "9" * 1_000 + ")}",
    ],
)
def test_a_type_that_no_array_can_have_is_refused_in_a_few_words(text):
    with pytest.raises(ex.ExplorerError, match="no array can be as large") as caught:
        parse_type(text)
    assert len(str(caught.value)) < 300
    with pytest.raises(ex.errors.OpenError, match="no array can be as large"):
        ex.open_hlo(f"ENTRY e {{\n  ROOT p = {text} parameter(0)\n}}\n")


@pytest.mark.parametrize("text", ["a" * 300_000, "a[" * 150_000, "f32[2]{" * 40_000, "(" * 300_000, "tensor<" * 40_000])
def test_a_type_of_any_text_is_read_in_one_go(text):
    assert parse_type(text).bytes >= 0


WORDS = st.sampled_from(["op:dot", "bytes > 1kB", "scope:attention", "line:12", "copy", "name:/[.]/", "rank == 2"])


@given(WORDS, WORDS)
def test_operators_combine_what_their_sides_find(a, b):
    whole, left, right = set(range(len(GRAPH))), set(find(GRAPH, a)), set(find(GRAPH, b))
    assert set(find(GRAPH, f"{a} and {b}")) == set(find(GRAPH, f"{a} {b}")) == left & right
    assert set(find(GRAPH, f"{a} or {b}")) == left | right
    assert set(find(GRAPH, f"not ({a} or {b})")) == whole - (left | right)


@pytest.mark.parametrize(
    ("type_", "found", "size", "count"),
    [
        ("f32[8,128]{1,0:T(8,128)}", (("f32", ("8", "128")),), 4096, 1024),
        ("tensor<8x128xbf16>", (("bf16", ("8", "128")),), 2048, 1024),
        ("tensor<complex<f32>>", (("complex<f32>", ()),), 8, 1),
        ("(s32[], pred[10]{0})", (("s32", ()), ("pred", ("10",))), 14, 1),
        ("f32[<=8,4]", (("f32", ("<=8", "4")),), 128, 32),
        ("f32[b,2*s]", (("f32", ("b", "2*s")),), 4, 1),
        ("s4[3]", (("s4", ("3",)),), 2, 3),
        ("f8e4m3fn[16]", (("f8e4m3fn", ("16",)),), 16, 16),
        ("token[]", (("token", ()),), 0, 1),
        ("", (), 0, 1),
    ],
)
def test_a_type_tells_its_arrays_bytes_and_elements(type_, found, size, count):
    arrays = tuple((array.dtype, array.dims) for array in parse_type(type_).arrays)
    assert (arrays, bytes_of(type_), elements(type_)) == (found, size, count)
