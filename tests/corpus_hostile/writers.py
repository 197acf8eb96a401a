"""Everything that writes a file, done again and again in a child that is killed, or whose disk is full.

    python -m tests.corpus_hostile.writers 500          kill -9, so many times, each writer in turn
    python -m tests.corpus_hostile.writers full FOLDER  each writer on the full disk that FOLDER is on, of a few MB

A file must be whole at any time: the one before, or the one after.
"""

from __future__ import annotations

import io
import json
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from time import sleep, time
from typing import Any
from zipfile import ZipFile

import numpy as np

import explorer as ex
from explorer.files import exports, golden
from explorer.files.capture import decode
from explorer.model.golden import Golden
from tests.support.functions import FUNCTIONS

_DAY = 86_400


@cache
def _capture() -> Any:
    return ex.explore(*FUNCTIONS["chain"])


@cache
def _profile() -> Any:
    return ex.Profile.load(Path(__file__).parents[1] / "support" / "displays" / "Profile.json")


def _ledger() -> Any:
    ledger = ex.Ledger()
    for call in range(500):
        ledger.add((ex.types.Event("compile", "step", reason=ex.types.Reason("first"), seconds=0.5, call=call),))
    return ledger


@cache
def _executable() -> Any:
    weights = np.random.default_rng(0).standard_normal(200_000).astype(np.float32)
    return ex.compile(lambda x: x + weights, args=[ex.InputInfo((200_000,), "float32")])


WRITERS: dict[str, Callable[[Path], object]] = {
    "capture": lambda path: _capture().save(path),
    "capture page": lambda path: _capture().to_html(path),
    "capture picture": lambda path: _capture().to_svg(path),
    "capture PNG": lambda path: _capture().to_png(path),
    "capture for Model Explorer": lambda path: exports.write_capture(_capture(), path),
    "result": lambda path: _profile().save(path),
    "result page": lambda path: _profile().to_html(path),
    "result picture": lambda path: _profile().to_svg(path),
    "Perfetto": lambda path: exports.write_perfetto(_profile(), path),
    "ledger": lambda path: _ledger().save(path),
    "ledger page": lambda path: _ledger().to_html(path),
    "session page": lambda path: ex.session().save(path),
    "executable": lambda path: _executable().save(path),
    "golden": lambda path: golden.save(Golden("m:f", "0.10.2", (), "", ("x" * 1000,) * 200), path),
    "findings page": lambda path: _capture().findings.to_html(path),
}


if find_spec("plotly"):  # of an extra
    WRITERS["chart page"] = lambda path: _ledger().timeline().to_html(path)


def contents(path: Path) -> dict[str, bytes]:
    """The files of a folder, but for what a killed process left."""
    return {each.name: each.read_bytes() for each in path.iterdir() if not each.name.endswith(".partial")}


def _is_whole(data: bytes, before: bytes) -> bool:
    """Whether a file ends as it should; pages and archives of one value may differ in a few bytes."""
    if data.startswith(b"EXPLORER"):
        return decode(data) is not None
    if data.startswith(b"PK"):
        return ZipFile(io.BytesIO(data)).testzip() is None
    return data[-8:] == before[-8:]


def kill(name: str, folder: Path, kills: int, chance: Random) -> list[str]:
    """Kill a writer at random moments, and return what was wrong with its files."""
    WRITERS[name](folder / "file")
    faults, whole = list[str](), contents(folder)
    for number in range(kills):
        child = os.fork()
        while child == 0:
            WRITERS[name](folder / "file")
        sleep(chance.random() * 0.2)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        after = contents(folder)
        if after.keys() != whole.keys() or not all(_is_whole(data, whole[each]) for each, data in after.items()):
            faults.append(f"{name}, kill {number}: a file isn't whole")
    left = [each for each in folder.iterdir() if each.name.endswith(".partial")]
    print(f"  {len(left)} of {kills} kills left a file half written", flush=True)
    for each in left:
        os.utime(each, (time() - _DAY - 60,) * 2)
    WRITERS[name](folder / "file")
    if after := [each.name for each in folder.iterdir() if each.name.endswith(".partial")]:
        faults.append(f"{name}: a day later there are still {after}")
    return faults


def main(kills: int) -> None:
    chance, faults = Random(0), list[str]()
    for at, name in enumerate(WRITERS):
        with TemporaryDirectory() as folder:
            share = kills // len(WRITERS) + (at < kills % len(WRITERS))
            faults += kill(name, Path(folder), share, chance)
            print(f"{name}: {share} kills, {len(faults)} faults so far", flush=True)
    print(json.dumps(faults))


def full(folder: Path) -> None:
    """Fill the disk that a folder is on, and write over each file."""
    for name, write in WRITERS.items():
        for each in folder.iterdir():
            each.unlink()
        write(folder / "file")
        before = contents(folder)
        with suppress(OSError), (folder / "ballast").open("wb", buffering=0) as ballast:
            for size in (2**20, 2**12, 1):
                with suppress(OSError):
                    while ballast.write(bytes(size)):
                        pass
        said = "nothing"
        try:
            write(folder / "file")
        except OSError as error:
            said = f"{error.strerror}: {error.filename}"
        after = {each: data for each, data in contents(folder).items() if each != "ballast"}
        left = [each.name for each in folder.iterdir() if each.name.endswith(".partial")]
        print(f"{name}: {said}; {'intact' if after == before else 'ALTERED'}; left half written: {left}", flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "full":
        full(Path(sys.argv[2]))
    else:
        main(int(sys.argv[1]))
