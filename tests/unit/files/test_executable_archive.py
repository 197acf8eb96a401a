"""An archive comes back exactly, or is refused with one sentence; a save that fails leaves the old file whole."""

import io
import json
import os
import random
import stat
import struct
import subprocess
import sys
import zipfile
import zlib
from contextlib import suppress
from hashlib import blake2b
from textwrap import dedent

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from explorer.errors import ArchiveError, ExplorerError
from explorer.files import executable_archive as archive
from explorer.files.executable_archive import read_archive, write_archive

pytestmark = pytest.mark.slow

ABOUT = {"function": "loss", "sizes": [1, 2.5, None, True], "path": "caf\xe9/\udcff.py", "options": {"b": 1, "a": {}}}
MEMBERS = {
    "program-0.stablehlo": b"module @jit_f " * 400,
    "native/code.bin": random.Random(0).randbytes(3000),
    "empty.bin": b"",
}


@pytest.fixture
def file(tmp_path):
    write_archive(tmp_path / "f.explorer", ABOUT, MEMBERS)
    return tmp_path / "f.explorer"


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    path = tmp_path_factory.mktemp("whole") / "f.explorer"
    write_archive(path, ABOUT, MEMBERS)
    return path.read_bytes()


@pytest.fixture(scope="module")
def scratch(tmp_path_factory):
    return tmp_path_factory.mktemp("altered") / "f.explorer"


def read(path, data):
    """Everything of these bytes, as an archive."""
    path.write_bytes(data)
    found = read_archive(path)
    return found.about, dict(found.members)


def test_what_was_written_comes_back_exactly(file):
    found = read_archive(file)
    assert found.about == ABOUT
    assert list(found.about["options"]) == ["b", "a"]
    assert dict(found.members) == MEMBERS
    with pytest.raises(KeyError):
        found.members["other"]


def test_members_may_be_anything_that_has_bytes(tmp_path):
    array = np.arange(6, dtype="int32").reshape(2, 3)
    write_archive(tmp_path / "f", {}, {"a": bytearray(b"ab"), "b": memoryview(array)})
    assert dict(read_archive(tmp_path / "f").members) == {"a": b"ab", "b": array.tobytes()}


def test_equal_content_gives_equal_bytes(file, tmp_path):
    write_archive(tmp_path / "g", dict(ABOUT), dict(reversed(MEMBERS.items())))
    assert (tmp_path / "g").read_bytes() == file.read_bytes()


def test_any_zip_program_can_look_inside(file):
    with zipfile.ZipFile(file) as opened:
        assert opened.testzip() is None
        manifest = json.loads(opened.read("manifest.json"))
        kinds = {info.filename: info.compress_type for info in opened.infolist()}
    assert (manifest["format"], manifest["version"]) == ("explorer-executable", 1)
    content = MEMBERS["native/code.bin"]
    listed = {"size": 3000, "blake2b": blake2b(content, digest_size=16).hexdigest()}
    assert manifest["members"]["native/code.bin"] == listed
    # What doesn't shrink is kept as it is.
    assert kinds["native/code.bin"] == kinds["empty.bin"] == zipfile.ZIP_STORED
    assert kinds["program-0.stablehlo"] == zipfile.ZIP_DEFLATED


@pytest.mark.parametrize("name", ["", "../a", "/a", "a/../b", "a//b", "a\\b", "C:a", ".a", "a\0", "é", "a" * 201, 5])
def test_a_name_that_could_lead_elsewhere_is_refused_when_saving(tmp_path, name):
    with pytest.raises(ArchiveError, match="can't name a member"):
        write_archive(tmp_path / "f", {}, {name: b""})
    with pytest.raises(ArchiveError, match="can't name a member"):
        write_archive(tmp_path / "f", {}, {"manifest.json": b""})
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {1}, b"", object()], ids=lambda v: type(v).__name__)
def test_what_is_no_json_is_refused_when_saving(tmp_path, value):
    with pytest.raises(ArchiveError, match="can't be in a file's manifest"):
        write_archive(tmp_path / "f", {"a": [value]}, {})
    assert not list(tmp_path.iterdir())


def test_too_much_is_refused_when_saving_as_when_loading(file, monkeypatch):
    monkeypatch.setattr(archive, "LARGEST", 1000)
    with pytest.raises(ArchiveError, match="at most 1,000 can be loaded"):
        write_archive(file, ABOUT, MEMBERS)
    with pytest.raises(ArchiveError, match="unpacks to 8,600 bytes by its manifest; at most 1,000"):
        read_archive(file)


# Writing -------------------------------------------------------------------------------------------------------------


def test_saving_leaves_nothing_else_behind(file):
    write_archive(file, {}, {})
    assert [path.name for path in file.parent.iterdir()] == ["f.explorer"]
    assert read_archive(file).about == {}


def test_a_new_file_has_the_permissions_of_any_new_file(file):
    (file.parent / "other").write_bytes(b"")
    assert file.stat().st_mode == (file.parent / "other").stat().st_mode


@pytest.mark.skipif(os.name != "posix", reason="permissions as Unix has them")
def test_a_file_that_was_there_keeps_its_permissions(file):
    file.chmod(0o640)
    write_archive(file, {}, {})
    assert stat.S_IMODE(file.stat().st_mode) == 0o640


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="who may write all can't be refused")
def test_a_file_that_may_not_be_written_is_not_replaced(file):
    before = file.read_bytes()
    file.chmod(0o444)
    with pytest.raises(PermissionError):
        write_archive(file, {}, {})
    assert file.read_bytes() == before


def test_a_symbolic_link_stays_one_and_leads_to_the_new_file(file):
    folder = file.parent / "elsewhere"
    folder.mkdir()
    (folder / "link").symlink_to(file)
    (folder / "dangling").symlink_to(file.parent / "new")
    write_archive(folder / "link", {"new": 1}, {})
    write_archive(folder / "dangling", {"new": 2}, {})
    assert (folder / "link").is_symlink()
    assert (read_archive(file).about, read_archive(file.parent / "new").about) == ({"new": 1}, {"new": 2})
    assert sorted(path.name for path in folder.iterdir()) == ["dangling", "link"]


def test_a_folder_or_a_missing_one_is_told_as_the_system_tells_it(tmp_path):
    with pytest.raises(IsADirectoryError):
        write_archive(tmp_path, {}, {})
    with pytest.raises(IsADirectoryError):
        read_archive(tmp_path)
    with pytest.raises(FileNotFoundError) as refused:
        write_archive(tmp_path / "none" / "f", {}, {})
    assert refused.value.filename == str(tmp_path / "none" / "f")  # not the one beside it
    with pytest.raises(FileNotFoundError):
        read_archive(tmp_path / "none")
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(os.name != "posix", reason="a device file")
def test_a_device_is_not_replaced_by_a_file(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ArchiveError, match="no regular file"):
        write_archive(tmp_path / "pipe", {}, {})
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


def run(code, *args):
    return subprocess.run([sys.executable, "-c", dedent(code), *map(str, args)], capture_output=True, text=True)


@pytest.mark.skipif(os.name != "posix", reason="a limit on what a process may write")
def test_a_disk_that_fills_up_while_saving_leaves_the_old_file_whole(file):
    before = file.read_bytes()
    done = run(
        """
        import random, resource, signal, sys
        from explorer.files.executable_archive import write_archive
        resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        write_archive(sys.argv[1], {}, {"large": random.Random(0).randbytes(100_000)})
        """,
        file,
    )
    assert f"OSError: [Errno 27] File too large: '{file}'" in done.stderr
    assert file.read_bytes() == before
    assert [path.name for path in file.parent.iterdir()] == ["f.explorer"]


def test_an_exception_or_a_crash_while_members_are_made_leaves_the_old_file_whole(file):
    before = file.read_bytes()

    class Members(dict):
        def __getitem__(self, name):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_archive(file, {}, Members(MEMBERS))
    done = run(
        """
        import os, sys
        from explorer.files.executable_archive import write_archive
        class Members(dict):
            def __getitem__(self, name):
                os._exit(9)
        write_archive(sys.argv[1], {}, Members(a=b""))
        """,
        file,
    )
    assert done.returncode == 9
    assert file.read_bytes() == before
    assert [path.name for path in file.parent.iterdir()] == ["f.explorer"]


def test_of_several_who_write_at_once_each_file_is_whole_and_the_last_one_stays(file):
    code = """
        import sys
        from explorer.files.executable_archive import write_archive
        for turn in range(40):
            write_archive(sys.argv[1], {"by": sys.argv[2]}, {"content": sys.argv[2].encode() * 20_000})
    """
    write_archive(file, {"by": "0"}, {"content": b"0" * 20_000})
    writers = [subprocess.Popen([sys.executable, "-c", dedent(code), str(file), name]) for name in "12"]
    seen = set()
    while any(writer.poll() is None for writer in writers):
        found = read_archive(file)
        assert found.members["content"] == found.about["by"].encode() * 20_000
        seen.add(found.about["by"])
    assert [writer.returncode for writer in writers] == [0, 0]
    assert seen & {"1", "2"}
    assert [path.name for path in file.parent.iterdir()] == ["f.explorer"]


def test_who_has_an_archive_open_keeps_what_it_was(file):
    found = read_archive(file)
    write_archive(file, {}, {"program-0.stablehlo": b"new"})
    assert dict(found.members) == MEMBERS


# Reading -------------------------------------------------------------------------------------------------------------


def test_the_error_is_one_and_names_the_file(file):
    file.write_bytes(b"hello")
    with pytest.raises(ArchiveError) as raised:
        read_archive(file)
    assert isinstance(raised.value, (ExplorerError, ValueError))
    assert str(raised.value) == (
        "f.explorer is no executable: it starts with b'hello'.\n  Hint: Executable.save writes one."
    )
    file.write_bytes(b"")
    with pytest.raises(ArchiveError, match=r"^f\.explorer is empty\.$"):
        read_archive(file)


def test_every_truncation_says_so(data, scratch):
    for size in (1, 4, 21, 22, 100, len(data) // 2, len(data) - 23, len(data) - 22, len(data) - 1):
        with pytest.raises(ArchiveError, match="truncated"):
            read(scratch, data[:size])


@given(st.data())
def test_any_altered_byte_is_refused_or_changes_nothing(data, scratch, choose):
    where = choose.draw(st.integers(0, len(data) - 1))
    flip = choose.draw(st.integers(1, 255))
    wrong = data[:where] + bytes([data[where] ^ flip]) + data[where + 1 :]
    with suppress(ArchiveError):
        assert read(scratch, wrong) == (ABOUT, MEMBERS)


def test_every_byte_of_the_zips_own_tables_may_be_altered(data, scratch):
    # There the fields are that zipfile trusts: each byte of them, to its extremes.
    names = ["manifest.json", *MEMBERS]
    with zipfile.ZipFile(io.BytesIO(data)) as opened:
        local = [range(i := opened.getinfo(name).header_offset, i + 30 + len(name)) for name in names]
        places = [*range(opened.start_dir, len(data)), *(where for part in local for where in part)]
    for where in places:
        for value in {0, 255, data[where] ^ 1} - {data[where]}:
            wrong = data[:where] + bytes([value]) + data[where + 1 :]
            with suppress(ArchiveError):
                assert read(scratch, wrong) == (ABOUT, MEMBERS)


@given(st.binary(min_size=1, max_size=40))
def test_bytes_before_after_or_inside_are_refused(data, scratch, extra):
    with zipfile.ZipFile(io.BytesIO(data)) as opened:
        ends = [opened.getinfo("empty.bin").header_offset, opened.start_dir]
    for where in (0, *ends, len(data)):
        with pytest.raises(ArchiveError):
            read(scratch, data[:where] + extra + data[where:])
    with pytest.raises(ArchiveError):
        read(scratch, extra)


@pytest.mark.parametrize(
    ("hidden", "told"), [(0, "before manifest.json"), (1, "before a"), (2, "after its last member")]
)
def test_bytes_that_no_zip_program_shows_are_refused(scratch, hidden, told):
    members = [("manifest.json", json.dumps(manifest_of(A))), A]
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        for i in range(3):
            if i == hidden:
                file.fp.write(b"PK\x03\x04" * 9)
                file.start_dir = file.fp.tell()
            if i < 2:
                file.writestr(*members[i])
    assert zipfile.ZipFile(buffer).testzip() is None
    with pytest.raises(ArchiveError, match=f"bytes {told}.* that belong to nothing"):
        read(scratch, buffer.getvalue())


def test_what_follows_the_end_is_told(data, scratch):
    with pytest.raises(ArchiveError, match="5 bytes follow its end"):
        read(scratch, data + b"hello")


def manifest_of(*contents):
    members = {name: listed(content) for name, content in contents}
    return {"format": "explorer-executable", "version": 1, "members": members, "about": {}}


def zipped(contents, manifest=None, /, **fields):
    """A zip with any content: an attacker's."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        said = json.dumps({**manifest_of(*contents), **fields}) if manifest is None else manifest
        file.writestr(zipfile.ZipInfo("manifest.json"), said)
        for name, content in contents:
            file.writestr(zipfile.ZipInfo(name), content)
    return buffer.getvalue()


def listed(content):
    return {"size": len(content), "blake2b": blake2b(content, digest_size=16).hexdigest()}


def test_a_zip_made_elsewhere_is_read_if_it_says_the_same(scratch):
    assert read(scratch, zipped([("a", b"1"), ("b", b"2")])) == ({}, {"a": b"1", "b": b"2"})


def test_what_is_said_of_an_executable_keeps_its_numbers(scratch):
    about = {"seconds": 0.1, "tiny": 5e-324, "large": -1.7976931348623157e308, "whole": 3, "one": 1.0}
    _, members = read(scratch, zipped([A], about=about))
    assert members == {"a": b"1"}
    kept, members = read(scratch, zipped([A], about=about))
    assert (kept, members) == (about, {"a": b"1"})
    assert {name: type(value) for name, value in kept.items()} == {name: type(value) for name, value in about.items()}


A, B = ("a", b"1"), ("b", b"2")


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (zipped([A], format="explorer-capture"), "none that Executable.save writes"),
        (zipped([], "[1]"), "none that Executable.save writes"),
        (zipped([], '{"a": NaN}'), "NaN is no number"),
        (zipped([], '{"a": 1e999}'), "1e999 is no number"),
        (zipped([], '{"a": 1, "a": 2}'), "an object has a key twice"),
        (zipped([], b'{"a": "\xff"}'), "utf-8"),
        (zipped([], '{"a": ' + "[" * 200_000 + "]" * 200_000 + "}"), "nested too deeply"),
        (zipped([], '{"a": ' + "1" * 5000 + "}"), "digits"),
        (zipped([], "{"), "JSONDecodeError"),
        (zipped([A], version=2), "written by a newer Explorer: it has format 2, and this one reads up to 1"),
        (zipped([A], version=2, members=None, about=None, more=1), "newer Explorer"),
        (zipped([A], version=0), "the version 0"),
        (zipped([A], version=True), "the version True"),
        (zipped([A], version="1"), "the version '1'"),
        (zipped([A], more=1), "other entries"),
        (zipped([A], about=[]), "other entries"),
        (zipped([A], members=[]), "altered"),
        (zipped([A], members={}), "differ from its manifest: a"),
        (zipped([A], members={"a": listed(b"1"), "c": listed(b"")}), "differ from its manifest: c"),
        (zipped([A], members={"a": {"size": True, "blake2b": ""}}), "lists a as"),
        (zipped([A], members={"a": {"size": -1, "blake2b": ""}}), "lists a as"),
        (zipped([A], members={"a": {"size": 1}}), "lists a as"),
        (zipped([A], members={"a": {**listed(b"1"), "more": 1}}), "lists a as"),
        (zipped([A], members={"a": listed(b"12")}), "a has 1 bytes, its manifest lists 2"),
        (zipped([A], members={"a": listed(b"2")}), "checksum of a"),
        (zipped([A, B], members={"a": listed(b"2"), "b": listed(b"1")}), "checksum of a"),
        (zipped([A], members={"a": {"size": 2**62, "blake2b": ""}}), "at most 268,435,456"),
        (zipped([("../a", b"1")]), "'../a' can't name a member"),
        (zipped([("/a", b"1")]), "'/a' can't name a member"),
        (zipped([("C:\\a", b"1")]), "can't name a member"),
        (zipped([("x" * 300, b"1")]), "can't name a member"),
        (zipped([("manifest.json/a", b"1")], members={"manifest.json": listed(b"")}), "can't name a member"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_file_that_someone_else_made_up_is_refused(scratch, wrong, told):
    with pytest.raises(ArchiveError) as raised:
        read(scratch, wrong)
    assert told in str(raised.value)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_members_of_one_name_are_refused(scratch):
    with pytest.raises(ArchiveError, match="differ from its manifest: a"):
        read(scratch, zipped([A, ("a", b"3")]))


def test_a_manifest_that_is_not_there_is_missed(scratch):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        file.writestr("a", b"")
    with pytest.raises(ArchiveError, match=r"manifest\.json"):
        read(scratch, buffer.getvalue())


def test_an_encrypted_member_is_refused(scratch):
    wrong = bytearray(zipped([A]))
    for signature, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = wrong.rindex(signature) + flags
        wrong[at] |= 1
    with pytest.raises(ArchiveError, match="encrypted member, 'a'"):
        read(scratch, bytes(wrong))


@pytest.mark.parametrize("how", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA], ids=["bzip2", "lzma"])
def test_another_way_of_packing_is_refused(scratch, how):
    content = bytes(1000)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        file.writestr("manifest.json", json.dumps(manifest_of(("a", content))))
        file.writestr("a", content, how)
    with pytest.raises(ArchiveError, match="a way that Explorer doesn't use"):
        read(scratch, buffer.getvalue())


def bomb(declared, unpacks_to):
    """A zip whose member is said to have some bytes, and unpacks to many more."""
    packed = zlib.compressobj(9, zlib.DEFLATED, -15)
    stream = packed.compress(bytes(unpacks_to)) + packed.flush()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        file.writestr(zipfile.ZipInfo("manifest.json"), json.dumps(manifest_of(("a", bytes(declared)))))
        file.writestr(zipfile.ZipInfo("a"), stream)
    found = bytearray(buffer.getvalue())
    local, central = found.rindex(b"PK\x03\x04"), found.rindex(b"PK\x01\x02")
    for at in (local + 8, central + 10):
        struct.pack_into("<H", found, at, zipfile.ZIP_DEFLATED)
    for at in (local + 14, central + 16):
        struct.pack_into("<I", found, at, zlib.crc32(bytes(declared)))
    for at in (local + 22, central + 24):
        struct.pack_into("<I", found, at, declared)
    return bytes(found)


def test_no_more_is_unpacked_than_was_declared(scratch):
    # 64 MB from 64 kB, in a process that has no room for it.
    scratch.write_bytes(bomb(1000, 2**26))
    done = run(
        """
        import resource, sys
        from explorer.files.executable_archive import read_archive
        members = read_archive(sys.argv[1]).members
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        print(members["a"] == bytes(1000))
        after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        print(after - before < 2**14)
        """,
        scratch,
    )
    assert done.stdout.split() == ["True", "True"], done.stderr


def test_a_huge_manifest_is_refused_before_it_is_unpacked(scratch):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        file.writestr("manifest.json", b" " * (2**26 + 1), zipfile.ZIP_DEFLATED)
    with pytest.raises(ArchiveError, match=r"67,108,865 bytes in 'manifest.json'; at most 67,108,864 are read"):
        read(scratch, buffer.getvalue())


@given(st.dictionaries(st.from_regex(r"[a-zA-Z0-9][a-zA-Z0-9._-]{0,9}", fullmatch=True), st.binary(max_size=99)))
def test_any_members_come_back(scratch, members):
    write_archive(scratch, {}, members)
    assert dict(read_archive(scratch).members) == members
