"""What every pass did, held against the dumps it was read from."""

import os
import re
import resource
import tempfile
from contextlib import suppress

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import explorer as ex
from explorer.capture.explore import CompileRequest, compile_stages
from explorer.capture.passes import VersionsBuilder, modules_in, read_passes
from explorer.capture.readers.hlo import read_hlo
from explorer.files.container import BlobReader, Blobs, read_column
from explorer.files.passes import pack_passes, unpack_passes
from explorer.model.passes import effect_of
from explorer.model.text_versions import aligned

METADATA = re.compile(r', metadata=\{(?:[^{}"]|"(?:[^"\\]|\\.)*")*\}')


def attention(q, k, v):
    scores = q @ k.T / jnp.sqrt(q.shape[-1] * 1.0)
    return jax.nn.softmax(scores) @ v


def scanned(weights, x):
    return jax.lax.scan(lambda carry, w: (jnp.tanh(carry @ w), carry.sum()), x, weights)


X = jnp.ones((128, 64))


@pytest.fixture(scope="module")
def capture():
    return ex.explore(attention, X, X, X)


@pytest.fixture(scope="module")
def passes(capture):
    return capture.passes


@pytest.fixture(scope="module")
def dump(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dump")
    options = {"xla_dump_to": str(folder), "xla_dump_hlo_pass_re": ".*"}
    jax.jit(scanned).lower(jnp.ones((3, 8, 8)), jnp.ones((4, 8))).compile(compiler_options=options)
    return folder


def program(text):
    """A module's lines without metadata and the tables of frames."""
    lines = [METADATA.sub("", line) for line in text.splitlines() if line]
    start = lines.index("FileNames") if "FileNames" in lines else len(lines)
    body = next((i for i in range(start, len(lines)) if lines[i].endswith("{")), len(lines))
    return lines[:start] + lines[body:]


def signed(text):
    return [re.sub(r", backend_config=\{.*\}", "", line) for line in program(text)]


def test_the_last_pass_leaves_what_the_capture_shows_as_hlo(capture, passes):
    assert signed(passes[-1].after) == signed(capture.hlo.text)


def test_each_pass_starts_where_the_one_before_it_ended(passes):
    for one, next_ in zip(passes, list(passes)[1:], strict=False):
        assert one.after == next_.before


def test_softmax_is_simplified_then_fused(passes):
    names = [one.name for one in passes]
    assert names.index("algsimp") < names.index("fusion") < names.index("scheduling")
    assert passes["fusion"].born
    assert "fusion(" not in passes["algsimp"].after
    assert "fusion(" in passes["fusion"].after


def test_the_counts_are_those_of_the_texts(passes):
    for one in passes:
        before, after = (
            {line.split(" = ")[0].replace("ROOT ", "").strip(): line for line in text.splitlines() if " = " in line}
            for text in (one.before, one.after)
        )
        assert one.instructions == len(after) - sum(line.startswith("HloModule") for line in after.values())
        assert one.born == len(after.keys() - before.keys())
        assert one.died == len(before.keys() - after.keys())


def test_passes_that_changed_nothing_are_counted_and_hidden(passes):
    assert passes.is_complete
    assert len(passes.all) > 100
    assert len(passes) < 10
    quiet = [one for one in passes.all if not one.is_consequential]
    assert len(quiet) + len(passes) == len(passes.all)
    assert all(one.before == one.after for one in quiet)
    assert all(one.seconds is not None and one.seconds >= 0 for one in quiet)


def test_the_diff_of_a_pass_turns_its_before_into_its_after(passes):
    for one in passes:
        lines = one.diff(context=10**6).splitlines()[3:]
        assert [line[1:] for line in lines if line[0] in " -"] == one.before.splitlines()
        assert [line[1:] for line in lines if line[0] in " +"] == one.after.splitlines()


def test_a_diff_has_the_asked_context_and_counts_its_hunks(passes):
    for line in passes["algsimp"].diff(context=0).splitlines()[2:]:
        assert line[0] in "@-+"
    hunk = re.search(r"@@ -(\d+),(\d+) \+(\d+),(\d+) @@\n((?:[ +\-].*\n?)*)", passes["fusion"].diff())
    assert hunk is not None
    body = hunk[5].splitlines()
    assert sum(line[0] in " -" for line in body) == int(hunk[2])
    assert sum(line[0] in " +" for line in body) == int(hunk[4])
    assert passes["fusion"].before.splitlines()[int(hunk[1]) - 1] == next(li[1:] for li in body if li[0] in " -")


def test_a_pass_is_found_by_name_and_by_position(passes):
    assert passes[0] is passes["algsimp"]
    assert passes["dce"] in passes.all
    with pytest.raises(KeyError, match="no pass is named 'fusoin'; these changed something: algsimp"):
        passes["fusoin"]


def test_the_repr_is_a_table_without_times(passes):
    lines = repr(passes).splitlines()
    assert re.fullmatch(r"Passes: \d+ of \d+ changed something", lines[0])
    assert lines[2].split()[1] == "algsimp"
    assert len(lines) == 2 + len(passes)
    assert str(passes["algsimp"]).startswith("algsimp: +")
    assert repr(ex.explore(attention, X, X, X).passes) == repr(passes)


def test_a_division_by_a_constant_is_followed_into_its_kernel(capture, passes):
    (division,) = [
        line.split(" = ")[0].split("%")[-1].strip()
        for line in passes[0].before.splitlines()
        if " divide(" in line and "%dot_general" in line
    ]
    history = passes.history(division)
    says = [event.says for event in history]
    assert says[0] == "is there"
    assert any(re.fullmatch(r"replaced by multiply[\w.]*", what) for what in says)
    fused = next(event for event in history if "fused into" in event.says)
    assert capture.hlo.graph[fused.others[0]].op == "multiply"
    assert repr(history).startswith(f"History of {division}\n  before all passes")


def test_what_follows_from_structure_alone_is_marked_as_inferred(passes):
    kinds = {(link.kind, link.inferred) for link in passes.links}
    assert ("fused", True) in kinds
    assert ("rewritten", False) in kinds
    assert not any(inferred for kind, inferred in kinds if kind in ("rewritten", "merged", "with", "unused"))


def test_every_instruction_that_died_has_its_end_told(passes):
    told = {(link.position, link.old) for link in passes.links}
    key = passes.versions.key
    for position, one in enumerate(passes):
        effect = effect_of(passes.versions, passes.versions.rows(one.first), passes.versions.rows(one.snapshot))
        assert {(position, int(key[row])) for row in effect.died} <= told


def test_equal_subexpressions_are_merged():
    merged = ex.explore(lambda x: jnp.sin(x + 1) * jnp.cos(x + 1), X).passes
    assert any(link.kind == "merged" for link in merged.links)


def test_a_called_function_is_followed_into_its_caller():
    inner = jax.jit(lambda x: jnp.sin(x) * 3 + 1)
    passes = ex.explore(lambda x: inner(x) @ inner(x + 1), jnp.ones((64, 64))).passes
    names, kinds = passes.versions.names, {link.kind for link in passes.links}
    assert "inlined" in kinds
    inlined = next(link for link in passes.links if link.kind == "inlined" and not link.inferred)
    says = [event.says for event in passes.history(names[inlined.old])]
    assert any(re.fullmatch(rf"inlined into main[\w.]* as {names[inlined.new]}", what) for what in says)


def test_an_unknown_instruction_names_close_ones(passes):
    with pytest.raises(KeyError, match=r"ever named 'dot_general\.99'; close are: dot_general"):
        passes.history("dot_general.99")


def test_passes_are_saved_with_the_capture_and_come_back_exactly(capture, passes, tmp_path):
    capture.save(tmp_path / "f.capture")
    loaded = ex.load(tmp_path / "f.capture")
    assert loaded.has_passes
    assert repr(loaded.passes) == repr(passes)
    assert [(p.before, p.after) for p in loaded.passes] == [(p.before, p.after) for p in passes]
    assert list(loaded.passes.links) == list(passes.links)
    assert loaded.wire == capture.wire


def test_a_capture_saved_without_them_says_how_to_have_them(tmp_path):
    capture = ex.explore(jnp.tanh, X, record=False)
    capture.save(tmp_path / "f.capture")
    loaded = ex.load(tmp_path / "f.capture")
    assert not loaded.has_passes
    with pytest.raises(ex.errors.NotRecordedError, match=r"not recorded in this capture of tanh.\n  Hint: explore"):
        loaded.passes  # noqa: B018


@pytest.mark.parametrize(
    ("table", "at", "value"),
    [
        ("columns", "key", 10**6),
        ("columns", "operand", -5),
        ("columns", "frame", 99_999),
        ("counts", "snapshot", 77),
        ("", "runs", 2**30),
        ("", "run_counts", 2**30),
        ("", "firsts", 2**30),
    ],
)
def test_passes_whose_indices_lead_out_are_refused(passes, table, at, value):
    blobs = Blobs()
    header = pack_passes(passes, blobs)
    place = (header[table] if table else header)[at]
    column = read_column(place, BlobReader(memoryview(b"".join(blobs.parts)))).copy()
    column[len(column) // 2] = value
    (header[table] if table else header)[at] = blobs.column(column)
    with pytest.raises((ValueError, IndexError)):
        unpack_passes(header, BlobReader(memoryview(b"".join(blobs.parts))))


def test_a_file_whose_passes_do_not_fit_is_refused_with_the_reason(capture, passes, tmp_path, monkeypatch):
    monkeypatch.setattr("explorer.files.passes._COUNTS", ("snapshot",))
    capture.__dict__.pop("wire", None)
    capture.save(tmp_path / "f.capture")
    capture.__dict__.pop("wire", None)
    monkeypatch.undo()
    with pytest.raises(ex.errors.CaptureFileError, match="does not fit its format: 'born'"):
        ex.load(tmp_path / "f.capture").passes  # noqa: B018


def test_a_program_with_too_many_lines_keeps_the_first_snapshots_and_says_so(dump, monkeypatch):
    monkeypatch.setattr("explorer.capture.passes.MOST_LINES", 90)
    passes = read_passes(dump)
    assert re.fullmatch(r"the last \d+ snapshots are left out: the program is too large", passes.omitted)
    assert repr(passes).endswith(passes.omitted)
    assert passes[0].name


def test_a_failed_exploration_has_no_passes():
    with pytest.raises(ex.errors.ExploreError) as caught:
        ex.explore(lambda x: x + jnp.ones(3), jnp.ones(2))
    with pytest.raises(ex.errors.NotRecordedError):
        caught.value.capture.passes  # noqa: B018


def test_recording_leaves_no_files_behind(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert len(ex.explore(jnp.tanh, X).passes)
    assert not os.listdir(tmp_path)


def test_the_users_compiler_options_are_kept():
    without = {"xla_disable_hlo_passes": "algsimp"}
    run = compile_stages(CompileRequest(attention, (X, X, X), {}, options=without)).capture
    assert "algsimp" not in [one.name for one in run.passes]
    assert signed(run.passes[-1].after) == signed(run.hlo.text)


def test_recording_works_where_jax_keeps_compiled_programs_on_disk(tmp_path):
    before = {
        name: getattr(jax.config, name)
        for name in ("jax_compilation_cache_dir", "jax_persistent_cache_min_compile_time_secs")
    }
    try:
        jax.config.update("jax_compilation_cache_dir", str(tmp_path))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
        for _ in range(2):
            assert len(ex.explore(lambda x: jnp.sin(x) * 3, X).passes)
        assert jax.config.jax_persistent_cache_min_compile_time_secs == 0
    finally:
        for name, value in before.items():
            jax.config.update(name, value)


def test_recording_works_while_the_user_profiles(tmp_path):
    with jax.profiler.trace(str(tmp_path)):
        passes = ex.explore(lambda *arrays: attention(*arrays), X, X, X).passes
    assert not passes.is_complete
    assert all(one.seconds is None for one in passes.all)
    assert passes["fusion"].born


def test_a_profile_that_can_not_be_written_leaves_the_profiler_to_the_user(tmp_path):
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))  # as on a full disk
    try:
        with suppress(ex.errors.NotRecordedError):
            _ = ex.explore(lambda *arrays: attention(*arrays), X, X, X).passes
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    with jax.profiler.trace(str(tmp_path)):
        pass


def test_a_dump_folder_is_read_and_reproduces_every_file(dump):
    (module,) = modules_in(dump)
    passes = read_passes(dump)
    assert not passes.is_complete
    assert all(one.seconds is None for one in passes.all)
    (first,) = dump.glob(f"{module}.before_optimizations.txt")
    assert program(passes[0].before) == program(first.read_text())
    after = [one.after for one in passes.all]
    for path in sorted(dump.glob(f"{module}.[0-9][0-9][0-9][0-9].*.txt")):
        assert any(program(path.read_text()) == program(text) for text in [*after, passes[0].before]), path.name


def test_the_rows_hold_what_the_hlo_reader_reads(dump):
    passes = read_passes(dump)
    versions = passes.versions
    (last,) = dump.glob("*.cpu_after_optimizations.txt")
    graph = read_hlo(last.read_text())
    rows = [row for row in versions.rows(passes[-1].snapshot).tolist() if versions.key[row] >= 0]
    # Newer XLAs leave get-tuple-elements out of dumps and write `%tuple#1`: a row's operand is then the tuple.
    nodes = [node for node in graph.nodes if "#" not in node.name]
    assert [versions.names[versions.key[row]] for row in rows] == [node.name for node in nodes]
    for row, node in zip(rows, nodes, strict=True):
        assert versions.ops[versions.op[row]] == node.op
        assert versions.types[versions.type[row]] == node.type
        assert [versions.names[key] for key in versions.operands(row)] == [
            o.name.partition("#")[0] for o in node.operands
        ]
        stack = []
        at = int(versions.frame[row])
        while at >= 0:
            stack.append(versions.frames[at])
            at = versions.frames[at].parent
        assert [(f.file, f.line) for f in stack] == [(f.file, f.line) for f in node.source]


def test_a_folder_without_a_dump_says_how_to_make_one(tmp_path, dump):
    with pytest.raises(ex.errors.NotRecordedError, match=r"no snapshot of a module.\n  Hint: dump with XLA_FLAGS"):
        read_passes(tmp_path)
    with pytest.raises(ex.errors.NotRecordedError, match=r"no snapshot of 'module_9\.jit_g'; there are: module_"):
        read_passes(dump, "module_9.jit_g")


def test_metadata_and_the_numbers_in_names_are_no_change():
    text = (
        "HloModule m\n\nENTRY %main (p: f32[2]) -> f32[2] {{\n"
        "  %p = f32[2] parameter(0)\n  ROOT %{0} = f32[2] tanh(%p){1}\n}}\n"
    )
    builder = VersionsBuilder()
    assert builder.add(text.format("t.1", ', metadata={op_name="jit(f)/{odd}\\"" stack_frame_id=1}'))
    assert not builder.add(text.format("t.1", ', metadata={op_name="jit(g)"}'))
    assert builder.add(text.format("t.2", ""))
    assert builder.add(text.format("t.2", "").replace("tanh", "exponential"))
    versions = builder.build()
    rename, rewrite = (effect_of(versions, versions.rows(i), versions.rows(i + 1)) for i in (0, 1))
    assert (rename.born, rename.died, rename.changed) == ((), (), ())
    assert len(rewrite.changed) == 1


@given(st.lists(st.lists(st.integers(0, 30), unique=True), min_size=1, max_size=6))
def test_any_sequence_of_snapshots_is_kept_exactly(shots):
    builder = VersionsBuilder()
    texts = []
    for shot in shots:
        lines = [f"  %x.{i} = f32[{i}] tanh(%x.{i - 1})" for i in shot]
        text = "\n".join(["HloModule m", "", "ENTRY %main () -> f32[] {", *lines, "}"]) + "\n"
        if builder.add(text):
            texts.append(text)
    versions = builder.build()
    assert [versions.text(i) for i in range(len(versions.snapshots))] == texts


@given(st.permutations(range(12)), st.permutations(range(4, 16)))
def test_aligned_pairs_keep_both_sides_in_order(before, after):
    pairs = list(aligned(np.asarray(before), np.asarray(after)))
    assert [old for old, _ in pairs if old >= 0] == list(before)
    assert [new for _, new in pairs if new >= 0] == list(after)
    assert all(old == new for old, new in pairs if old >= 0 and new >= 0)
    assert sum(old == new for old, new in pairs) >= 1
