"""A saved capture comes back exactly, or is refused with the reason."""

import gzip
import struct
from dataclasses import replace
from hashlib import blake2b

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import explorer as ex
from explorer.files.capture import _read_stage, decode
from explorer.files.capture_writing import encode
from explorer.files.container import VERSION, BlobReader, Blobs, table
from explorer.files.passes import pack_passes, unpack_passes
from explorer.model.capture import Capture
from explorer.model.graph import Frame, Graph, Group
from explorer.model.passes import Passes
from explorer.model.stage import Durations, Stage
from tests.support.functions import loss

COLUMNS = ("op", "type", "scope", "operand_start", "operand", "group", "frame", "line")
TABLES = ("names", "ops", "types", "scopes", "groups", "frames")
TEXT = st.text(max_size=12)


@pytest.fixture(scope="module")
def capture():
    return ex.explore(loss, jnp.ones((3, 16, 16)), jnp.ones((4, 16)))


@pytest.fixture
def saved(capture, tmp_path):
    capture.save(tmp_path / "loss.capture")
    return tmp_path / "loss.capture"


def assert_same(one: Capture, other: Capture) -> None:
    for name in ("function", "file", "line", "signature", "durations", "failure", "id"):
        assert getattr(one, name) == getattr(other, name)
    for name in ("environment", "cost", "memory", "sources"):
        assert dict(getattr(one, name)) == dict(getattr(other, name))
    assert tuple(one.constants) == tuple(other.constants)
    assert [s.name for s in one.stages] == [s.name for s in other.stages]
    for a, b in zip(one.stages, other.stages, strict=True):
        assert a.text == b.text
        for column in COLUMNS:
            np.testing.assert_array_equal(getattr(a.graph, column), getattr(b.graph, column))
        for name in TABLES:
            assert list(getattr(a.graph, name)) == list(getattr(b.graph, name))


def test_a_saved_capture_comes_back_exactly(capture, saved):
    loaded = ex.load(saved)
    assert_same(capture, loaded)
    assert repr(loaded) == repr(capture) == "Capture(loss: jaxpr → stablehlo → hlo)"
    assert loaded.nodes_at(loss.__code__.co_firstlineno + 2)
    assert loaded.sources[loss.__code__.co_filename].label == "functions.py"


def test_the_numbers_of_nodes_come_back_in_single_precision(capture):
    known = np.arange(len(capture.hlo.graph)) * 1e9
    known[0] = np.nan
    graph = replace(capture.hlo.graph, measure=lambda _: {"time": known})
    alone = replace(capture, exact_sets={}, read_passes=None)
    measured = replace(alone, stages=(Stage("hlo", lambda: (capture.hlo.text, graph)),))
    (stage,) = decode(encode(measured)).stages
    np.testing.assert_array_equal(stage.graph.measures["time"], known.astype(np.float32))


def test_a_pass_that_says_it_changed_nothing_where_lines_went_pairs_none_of_them(capture):
    passes = capture.passes
    step = next(step for step in passes if len(step.before.splitlines()) != len(step.after.splitlines()))
    silent = replace(step, born=0, died=0, changed=0, moved=False)
    steps = [silent if each is step else each for each in passes.all]
    blobs = Blobs()
    header = pack_passes(Passes(passes.versions, steps, links=()), blobs)
    read = unpack_passes(header, BlobReader(memoryview(b"".join(blobs.parts))), len(capture.jaxpr.graph))
    assert len(read.links) > 0
    assert step.index not in {read[link.position].index for link in read.links}


def test_saving_leaves_nothing_else_behind(saved):
    assert [p.name for p in saved.parent.iterdir()] == ["loss.capture"]


def test_a_save_that_fails_leaves_the_old_file_whole(capture, saved, monkeypatch):
    before = saved.read_bytes()

    def full(file):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space") as refused:
        capture.save(saved)
    assert refused.value.filename == str(saved)
    assert saved.read_bytes() == before
    assert [path.name for path in saved.parent.iterdir()] == [saved.name]


def test_every_truncation_says_so(saved):
    data = saved.read_bytes()
    for size in (9, 20, 44, 45, len(data) // 2, len(data) - 1):
        with pytest.raises(ex.errors.CaptureFileError, match="truncated"):
            decode(data[:size])


def test_a_newer_format_names_both_versions(saved):
    data = bytearray(saved.read_bytes())
    data[8] = VERSION + 1
    with pytest.raises(ex.errors.CaptureFileError, match=rf"format {VERSION + 1}.*up to {VERSION}.*upgrade"):
        decode(bytes(data))


def test_something_else_is_no_capture(tmp_path):
    for content in (b"", b"PK\x03\x04 a zip file", b"\x80\x04pickle"):
        (tmp_path / "other").write_bytes(content)
        with pytest.raises(ex.errors.CaptureFileError, match="this is no capture"):
            ex.load(tmp_path / "other")


@pytest.mark.parametrize("at", range(44))
def test_every_altered_byte_of_the_prefix_is_refused(capture, at):
    for change in range(1, 256):
        wire = bytearray(capture.wire)
        wire[at] ^= change
        with pytest.raises(ex.errors.CaptureFileError):
            decode(bytes(wire))


@given(data=st.data())
def test_any_altered_byte_is_refused(capture, data):
    wire = bytearray(capture.wire)
    at = data.draw(st.integers(0, len(wire) - 1))
    wire[at] ^= data.draw(st.integers(1, 255))
    with pytest.raises(ex.errors.CaptureFileError):
        decode(bytes(wire))


@st.composite
def graphs(draw):
    size = draw(st.integers(0, 12))
    groups = draw(st.lists(st.builds(Group, TEXT, TEXT, st.just(-1), st.just(-1)), max_size=3))
    frames = [Frame(draw(TEXT), draw(TEXT), draw(st.integers(0, 2**31 - 1)), parent=i - 1) for i in range(3)]
    operands = [draw(st.lists(st.integers(0, size - 1), max_size=3)) for _ in range(size)]
    strings = draw(st.lists(TEXT, min_size=1, max_size=3, unique=True))

    def column(low, high):
        return np.asarray([draw(st.integers(low, high)) for _ in range(size)], np.int32)

    return Graph(
        names=[draw(TEXT) for _ in range(size)],
        op=column(0, len(strings) - 1),
        type=column(0, len(strings) - 1),
        scope=column(0, len(strings) - 1),
        operand_start=np.cumsum([0, *map(len, operands)], dtype=np.int32),
        operand=np.asarray([i for row in operands for i in row], np.int32),
        group=column(-1, len(groups) - 1),
        frame=column(-1, 2),
        line=column(-(2**31), 2**31 - 1),
        ops=strings,
        types=strings,
        scopes=strings,
        groups=groups,
        frames=frames,
    )


@pytest.mark.slow
@given(graph=graphs(), text=st.text(max_size=50))
def test_any_graph_and_text_come_back_exactly(graph, text):
    capture = Capture("f", "", (Stage("hlo", lambda: (text, graph)),), Durations())
    assert_same(capture, decode(encode(capture)))


@pytest.mark.parametrize(
    ("table", "column", "value"),
    [
        ("columns", "op", 9),
        ("columns", "frame", -2),
        ("columns", "operand", 5),
        ("columns", "operand_start", -1),
        ("frames", "parent", 7),
        ("groups", "caller", 4),
    ],
)
def test_a_file_whose_checksum_fits_but_whose_indices_lead_out_is_refused(table, column, value):
    graph = Graph(
        names=["a", "b"],
        **{name: np.zeros(2, np.int32) for name in ("op", "type", "scope", "group", "frame", "line")},
        operand_start=np.asarray([0, 0, 1], np.int32),
        operand=np.asarray([0], np.int32),
        ops=["add"],
        types=["f32[]"],
        scopes=[""],
        groups=[Group("main", "entry")],
        frames=[Frame("f.py", "f", 1)],
    )
    if table == "columns":
        getattr(graph, column)[-1] = value
    else:
        rows = getattr(graph, table)
        rows[0] = replace(rows[0], **{column: value})
    with pytest.raises(ex.errors.CaptureFileError, match="outside of the graph"):
        _check_through_file(graph)


def _check_through_file(graph: Graph) -> None:
    """What a file made by another hand would hold: written without reading the graph."""
    blobs = Blobs()
    stage = {
        "name": "hlo",
        "text": blobs.add(b""),
        **{name: list(getattr(graph, name)) for name in ("names", "ops", "types", "scopes")},
        "columns": {name: blobs.column(getattr(graph, name)) for name in COLUMNS},
        "groups": table(blobs, graph.groups, Group),
        "frames": table(blobs, graph.frames, Frame),
    }
    (read,) = [_read_stage(stage, BlobReader(memoryview(b"".join(blobs.parts))))]
    assert len(read.graph)


def test_a_file_without_what_the_format_wants_is_refused():
    head = b"{}  "
    raw = struct.pack("<I", len(head)) + head
    payload = gzip.compress(raw)
    digest = blake2b(payload, digest_size=16).digest()
    data = struct.pack("<8sIQQ16s", b"EXPLORER", VERSION, len(raw), len(payload), digest) + payload
    with pytest.raises(ex.errors.CaptureFileError, match="does not fit its format: 'sources'"):
        decode(data)
