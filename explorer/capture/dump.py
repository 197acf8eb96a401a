"""The modules and files in a folder that `--xla_dump_to` wrote."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

# module_0006.jit_f.before_optimizations.txt, module_0006.jit_f.sm_9.0_gpu_after_optimizations.txt, ….hlo.pb; the files
# of a pass, `.0011.simplification.after_algsimp.before_dce.txt`, have a number instead.
_WHOLE = re.compile(
    r"(?P<prefix>.+?)\.(?:(?:sm_\d+\.)?[\w:+\-]+_)?(?P<when>before|after)_optimizations(?:\.hlo)?\.(?P<kind>txt|pb)(?:\.gz)?"
)
_PASS = re.compile(r"(?P<prefix>.+?)\.\d{4,}\.[^.]+\.after_.+\.txt")
_NUMBER = re.compile(r"module_\d+\.")
_SINGLE = re.compile(r"(?P<prefix>.+?)(?:\.(?:hlo|stablehlo|mlir|mlirbc|pb|txt))+(?:\.gz)?")
_SUFFIXES = (".hlo", ".mlir", ".mlirbc", ".stablehlo", ".pb", ".hlo.txt", ".hlo.gz", ".mlir.gz")


@dataclass
class Dump:
    """One module of a dump.

    Args:
        prefix: The start of its files' names, `module_0006.jit_f`.
        files: Its text `before` and `after` optimization, or one file, `only`.
        size: Of the files, in bytes.
        has_passes: True if there are files of its passes.
    """

    prefix: str
    files: dict[str, Path] = field(default_factory=dict[str, Path])
    size: int = 0
    has_passes: bool = False

    @property
    def name(self) -> str:
        """The module's name, `jit_f`."""
        return _NUMBER.sub("", self.prefix)


def dumps_in(folder: Path) -> list[Dump]:
    """Return the modules of a folder, the largest first; without XLA's file names, each file is a module."""
    paths = files_in(folder)
    dumps = _whole_modules(paths) or _single_modules(paths)
    for dump in dumps.values():
        dump.files = {when: dump.files[when] for when in ("before", "after", "only") if when in dump.files}
        dump.size = sum(path.stat().st_size for path in dump.files.values())
    return sorted(dumps.values(), key=lambda dump: (-dump.size, dump.prefix))


def files_in(folder: Path) -> list[Path]:
    """Return a folder's files by name, without links to elsewhere: a foreign dump must not show other files."""
    root = folder.resolve()
    return sorted(
        path
        for path in folder.iterdir()
        if path.is_file() and (not path.is_symlink() or path.resolve().is_relative_to(root))
    )


def _whole_modules(paths: list[Path]) -> dict[str, Dump]:
    """Return the modules before and after optimization by prefix, from XLA's file names."""
    dumps: dict[str, Dump] = {}
    for path in paths:
        if whole := _WHOLE.fullmatch(path.name):
            dump = dumps.setdefault(whole["prefix"], Dump(whole["prefix"]))
            if whole["kind"] == "txt" or whole["when"] not in dump.files:  # text rather than its proto
                dump.files[whole["when"]] = path
    for path in paths:
        if (step := _PASS.fullmatch(path.name)) and step["prefix"] in dumps:
            dumps[step["prefix"]].has_passes = True
    return dumps


def _single_modules(paths: list[Path]) -> dict[str, Dump]:
    """Return the modules that were saved under other file names, by prefix."""
    dumps: dict[str, Dump] = {}
    for path in paths:
        if path.name.endswith(_SUFFIXES) and (single := _SINGLE.fullmatch(path.name)):
            dumps.setdefault(single["prefix"], Dump(single["prefix"])).files.setdefault("only", path)
    return dumps
