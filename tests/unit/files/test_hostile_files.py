"""No file from elsewhere can hurt: hundreds of crafted ones of each format, opened in a child that is watched."""

import json
import subprocess
import sys
import zlib
from random import Random

import pytest

from explorer.files.container import ZLIB, Unpacker, UnpackingError
from tests.corpus_hostile.formats import FORMATS

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", FORMATS)
def test_every_crafted_file_is_refused_or_opened_within_bounds_and_writes_nothing(name, tmp_path):
    child = [sys.executable, "-m", "tests.corpus_hostile", name, str(tmp_path)]
    done = subprocess.run(child, capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, done.stderr[-2000:]  # a crash of XLA or of MLIR is a fault too
    report = json.loads(done.stdout.splitlines()[-1])
    assert report["faults"] == []
    assert report["written"] == []
    assert report["refused"] + report["opened"] >= 300
    # What nothing was done to opens, and what is nonsense is refused; what can't be read of a module is shown as text,
    # and of a log it is left out.
    assert min(report["refused"], report["opened"]) >= (1 if name in ("modules", "dumps", "logs") else 20)


def test_a_file_packed_in_pieces_is_read_to_its_last_byte_and_no_further():
    for size in (0, 1, 257, 2**20 - 1, 2**20, 2**20 + 1, 3 * 2**20):
        data = Random(size).randbytes(size // 2) + bytes(size - size // 2)
        packed = zlib.compress(data)
        for claimed in (size, None):
            assert Unpacker(len(packed)).unpack(packed, ZLIB, claimed) == data
            with pytest.raises(UnpackingError, match=r"truncated|size differs"):
                Unpacker(len(packed)).unpack(packed[:-5], ZLIB, claimed)
        for claimed in (size - 1, size + 1, 2**63):
            with pytest.raises(UnpackingError, match=r"size differs|or more; at most"):
                Unpacker(len(packed)).unpack(packed, ZLIB, claimed)


def test_the_pieces_of_a_file_share_what_it_may_unpack_to():
    packed = zlib.compress(bytes(10 * 2**20))
    unpacker = Unpacker(len(packed))
    unpacker.unpack(packed, ZLIB)
    with pytest.raises(UnpackingError, match=r"at most 16,777,216 are read"):
        unpacker.unpack(packed, ZLIB)


# Mutants that once hung, raised an error that isn't Explorer's, or wrote to the terminal.
@pytest.mark.parametrize(
    ("name", "seed"),
    [
        *(("captures", 603477519), ("goldens", 603508541), ("modules", 603477165), ("results", 603478302)),
        *(("captures", 604071566), ("executables", 583170689)),
    ],
)
def test_a_mutant_that_was_a_fault_is_refused_or_opened(name, seed):
    again = [sys.executable, "-m", "tests.corpus_hostile.fuzz", "again", name, str(seed)]
    done = subprocess.run(again, capture_output=True, text=True, timeout=200, check=True)
    assert json.loads(done.stdout)["faults"] == []
