"""Every file is read within bounds and written whole or not at all, whichever loader or writer is at work."""

import json
import math
import os
import resource
import stat
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

import explorer as ex
from explorer.errors import GoldenFileError, OptionError, SignalsError, UnreadableTextError
from explorer.files.container import Blobs
from explorer.files.disk import (
    parse_json,
    parse_toml,
    project_settings,
    read_bytes,
    read_lines,
    replacing,
    write_text,
    write_whole,
)
from explorer.files.golden import from_toml
from explorer.files.instruction_log import read_log, read_timeline
from explorer.files.signals import read_signals
from explorer.model.findings import Findings
from explorer.model.golden import Golden
from tests import one_door
from tests.corpus_hostile.formats import capture_parts, wire
from tests.corpus_hostile.mutations import dumps
from tests.corpus_hostile.writers import WRITERS, contents

DISPLAYS = Path(__file__).parents[2] / "support" / "displays"
LOADERS = {
    "capture": ex.load,
    "executable": ex.Executable.load,
    "result": ex.Timing.load,
    "ledger": ex.Ledger.load,
    "ledgers": ex.merge_ledgers,
    "golden": Golden.load,
    "signals": read_signals,
    "settings": lambda path: project_settings(path, "lint"),
    "log": read_log,
    "timeline": read_timeline,
    "module": ex.open_hlo,
}


@pytest.fixture(params=LOADERS)
def load(request):
    return LOADERS[request.param]


def test_no_loader_waits_for_a_pipe(load, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ex.ExplorerError, match="no regular file"):
        load(tmp_path / "pipe")


def test_no_loader_reads_a_device(load):
    with pytest.raises(ex.ExplorerError, match="no regular file"):
        load("/dev/zero")


def test_no_loader_takes_an_impossible_name(load):
    for name in ("a\0b", "a\ud800b"):
        with pytest.raises(ex.ExplorerError):
            load(name)


def test_a_file_is_read_up_to_its_bound_and_not_beyond(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"x" * 100)
    assert read_bytes(path, 100, "a text") == b"x" * 100
    with pytest.raises(GoldenFileError, match="file has 100 bytes; a golden file has at most 99"):
        read_bytes(path, 99, "a golden file", GoldenFileError)
    if os.path.exists("/proc/self/status"):  # whose size is said to be 0
        assert read_bytes("/proc/self/status", 10**6, "a text").startswith(b"Name:")


def test_a_line_without_end_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("explorer.files.disk.LONGEST_LINE", 10)
    path = tmp_path / "log"
    path.write_bytes(b"0123456789"[:9] + b"\n" + b"0123456789\n")
    lines = read_lines(path, "a log", UnreadableTextError)
    assert next(lines) == b"012345678\n"
    with pytest.raises(UnreadableTextError, match="a line of more than 10 bytes"):
        next(lines)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[" * 100_000, "nested too deeply"),
        ("[" + "[]," * 5_000_000 + "[]]", "values, and at most"),
        ("9" * 5_000, "no number"),
        ("-1" + "0" * 100, "no number"),
        (b"\xff", "codec"),
        ("[1e999]", "no number"),
        ("[NaN]", "no number"),
        ("[-Infinity]", "no number"),
    ],
)
def test_json_that_takes_more_than_its_size_is_refused(text, said):
    with pytest.raises(ValueError, match=said):
        parse_json(text)


@pytest.mark.parametrize(
    "text",
    [
        "a." * 100_000 + "a = 1",
        "a = " + "9" * 5_000,
        "a = 0x" + "f" * 5_000,
        "a = " + "[" * 100_000,
        "[a" + ".a" * 9_999,
    ],
)
def test_toml_that_takes_more_than_its_size_is_refused(text, tmp_path):
    with pytest.raises(ValueError, match=r"."):
        parse_toml(text)
    with pytest.raises(GoldenFileError) as refused:
        from_toml(text)
    assert len(str(refused.value)) < 1_000
    (tmp_path / "pyproject.toml").write_text(text)
    with pytest.raises(OptionError):
        project_settings(tmp_path / "pyproject.toml", "lint")


def aliases(levels: int, width: int = 9) -> str:
    lines = ["a0: &a0 [x]"] + [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * width)}]" for i in range(1, levels)]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    "text",
    [
        aliases(6),
        aliases(9),
        aliases(40, 2),
        "a: &a [*a]\n",
        "a: &a {shard: *a}\n",
        "a: {shard: {axis: 0, workers: 1000000000}}\n",
        "a: {shard: {axis: 0, workers: " + "9" * 5_000 + "}}\n",
        "a: {shard: {axis: 0x" + "f" * 900 + ", workers: 1}}\n",
        "a: {shard: {axis: " + "1:" * 400 + "1, workers: 1}}\n",
        "a: {compile: " + "x" * 5_000 + "}\n",
        "a: " + "[" * 5_000 + "]" * 5_000,
        "? [" + "x, " * 300 + "]\n: {}\n",
        'a: "\\UFFFFFFFF"\n',
    ],
)
def test_a_file_of_signals_that_takes_more_than_its_size_is_refused_in_a_few_words(text, tmp_path):
    (tmp_path / "signals.yaml").write_text(text)
    with pytest.raises(SignalsError) as refused:
        read_signals(tmp_path / "signals.yaml")
    assert len(str(refused.value)) < 1_000


def test_an_alias_in_a_file_of_signals_is_what_it_stands_for(tmp_path):
    (tmp_path / "signals.yaml").write_text("a: &fast {compile: true, optimization_level: 3}\nb: *fast\n")
    read = read_signals(tmp_path / "signals.yaml")
    assert read["b"].optimization_level == read["a"].optimization_level == 3


def test_a_log_with_numbers_of_any_length_is_read(tmp_path):
    good = "  1.500s | #0001 | RUN        | MAIN   | add |"
    long = [f"  {'9' * 5000}s | #1 | RUN | MAIN | add |", f"  1.0s | #{'9' * 5000} | RUN | MAIN | add |"]
    (tmp_path / "log").write_text("\n".join([good, *long, good]) + "\n")
    assert len(read_log(tmp_path / "log")) == 2


def test_findings_of_any_text_are_refused_in_a_few_words():
    for text in (
        "[" * 100_000,
        '{"explorer_findings": ' + "9" * 4_000 + "}",
        '{"explorer_findings": 1, "x": "' + "y" * 10**6,
    ):
        with pytest.raises(UnreadableTextError) as refused:
            Findings.from_json(text)
        assert len(str(refused.value)) < 1_000


def test_a_capture_with_its_stages_in_another_order_is_refused(tmp_path):
    header, blobs = capture_parts()
    (tmp_path / "capture").write_bytes(wire(dumps({**header, "stages": header["stages"][::-1]}), blobs))
    with pytest.raises(ex.errors.CaptureFileError, match="stages are in another order"):
        ex.load(tmp_path / "capture")


@pytest.mark.parametrize("number", ["1e999", "NaN", "1" + "0" * 400])
@pytest.mark.parametrize("part", ["cost", "memory"])
def test_a_capture_with_a_number_that_it_could_not_save_or_show_is_refused(tmp_path, part, number):
    header, blobs = capture_parts()
    changed = dumps({**header, part: {"flops": "@"}}).replace(b'"@"', number.encode())
    (tmp_path / "capture").write_bytes(wire(changed, blobs))
    with pytest.raises(ex.errors.CaptureFileError, match="is no number"):
        ex.load(tmp_path / "capture")


def test_a_capture_whose_jaxpr_calls_itself_is_refused(tmp_path):
    header, old = json.loads(dumps(capture_parts()[0])), capture_parts()[1]
    groups, blobs = header["stages"][0]["groups"], Blobs()
    offset, size = blobs.column([0] * (groups["caller"][1] // 4))  # the first node, which is in the first group
    groups["caller"] = [len(old) + offset, size]
    (tmp_path / "capture").write_bytes(wire(dumps(header), old + b"".join(blobs.parts)))
    with pytest.raises(ex.errors.CaptureFileError, match="before its caller"):
        len(ex.load(tmp_path / "capture").jaxpr.graph)


@pytest.mark.parametrize("unattributed", [8.0, 2147483647.0, math.inf, math.nan, -1.0])
def test_a_profile_with_more_time_than_there_was_is_shown(unattributed):
    profile = replace(ex.Profile.load(DISPLAYS / "Profile.json"), unattributed=unattributed)
    assert len(profile.to_text()) < 10_000
    assert len(repr(profile)) < 10_000


@pytest.mark.parametrize("count", ["9" * 5_000, "many", "-1"])
def test_a_module_for_any_number_of_devices_is_opened(count):
    head = f"HloModule m, num_partitions={count}, replica_count={count}\n\n"
    assert ex.open_hlo(head + "ENTRY e {\n  ROOT p = f32[8] parameter(0)\n}\n").collectives.devices >= 1


# Writing --------------------------------------------------------------------------------------------------------------


def test_a_writer_that_fails_leaves_the_file_as_it_was(tmp_path):
    path = tmp_path / "file"
    write_whole(path, b"before")
    with pytest.raises(TypeError), replacing(path) as file:
        file.writelines([b"half of what comes after", None])
    assert contents(tmp_path) == {"file": b"before"}
    assert [*tmp_path.iterdir()] == [path]


@pytest.mark.parametrize("name", WRITERS)
def test_a_full_disk_leaves_the_file_as_it_was(name, tmp_path):
    """A limit on the size of files fails as a full disk does."""
    WRITERS[name](tmp_path / "file")
    before = contents(tmp_path)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))
    try:
        with pytest.raises(OSError, match="file"):
            WRITERS[name](tmp_path / "file")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert contents(tmp_path) == before
    assert not [*tmp_path.glob("*.partial")]


@pytest.mark.slow
def test_kills_leave_every_file_whole_and_nothing_a_day_later():
    done = subprocess.run(
        [sys.executable, "-m", "tests.corpus_hostile.writers", "512"], capture_output=True, text=True, timeout=1200
    )
    assert done.stdout.splitlines()[-1] == "[]", done.stdout + done.stderr[-2000:]


def test_what_a_killed_process_left_goes_a_day_later(tmp_path):
    for name in (f".{'0a' * 8}.partial", f".{'1b' * 8}.partial", "mine.partial"):
        (tmp_path / name).write_bytes(b"half")
    old = time.time() - 86_460
    os.utime(tmp_path / f".{'0a' * 8}.partial", (old, old))
    os.utime(tmp_path / "mine.partial", (old, old))
    write_whole(tmp_path / "file", b"whole")
    assert {each.name for each in tmp_path.iterdir()} == {f".{'1b' * 8}.partial", "mine.partial", "file"}


def test_a_page_takes_no_devices_place():
    with pytest.raises(OSError, match="/dev/null"):
        write_text("/dev/null", "page")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


def test_half_of_a_surrogate_pair_is_written_as_a_question_mark(tmp_path):
    assert write_text(tmp_path / "page", "a\ud800b").read_bytes() == b"a?b"


# The rule -------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_files_are_opened_by_one_module():
    assert one_door.problems() == []


@pytest.mark.parametrize(
    "call",
    [
        "open(path)",
        "path.open('rb')",
        "Path(path).open(encoding='utf-8')",
        "path.read_text()",
        "path.write_bytes(data)",
        "np.load(path)",
        "json.load(file)",
        "yaml.safe_load(text)",
        "os.open(path, 0)",
        "gzip.open(path)",
        "zipfile.ZipFile(path)",
        "tempfile.NamedTemporaryFile()",
    ],
)
def test_the_rule_sees_each_way_to_open_a_file(call):
    assert [line for line, _ in one_door.calls(f"x = 1\nf({call})\n")] == [2]


def test_the_rule_passes_over_what_opens_no_file():
    assert not [
        *one_door.calls("kind.open(value)\nrows.open(name, is_entry=True)\njson.loads(text)\nyaml.SafeLoader('')")
    ]
