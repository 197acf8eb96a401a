"""Compilers of other hardware, each in a folder of Explorer's own that the user's JAX never sees.

In JAX's environment, a GPU's wheel prints a traceback at each start without a GPU, and a `libtpu` newer than jaxlib
ends the process. So pip installs the wheel that fits this jaxlib, without dependencies, where only the compiler
process looks.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from importlib.util import find_spec
from pathlib import Path
from stat import S_ISVTX, S_IWGRP, S_IWOTH
from tempfile import mkdtemp

from explorer.errors import MissingCompilerError, MissingPackageError
from explorer.files.disk import cache_folder, write_text
from explorer.hardware.names import parse_target

_DONE = "installed-by-explorer"  # written last: a folder without this file is incomplete
_PATIENCE = 1800.0  # seconds for 200 MB over a slow line


def is_whole(folder: Path) -> bool:
    """Return True if `install_into` has filled the folder."""
    return (folder / _DONE).is_file()


def distrust(folder: Path) -> str:
    """Return why code in a folder may not run, because another user can put code there; empty if it may."""
    # The folder and those of Explorer's cache above it must belong to this user or root, and be writable only for them.
    # Above the cache nothing may be writable for all, as in a shared folder where another user can swap the next one.
    if not hasattr(os, "getuid"):
        return ""  # Windows, where the user's profile is private
    folder, own = folder.resolve(), cache_folder().resolve()
    for path in (folder, *folder.parents):
        status = path.stat()
        is_below = path == own or own in path.parents
        if is_below and status.st_uid not in (os.getuid(), 0):
            return f"{path} belongs to another user, number {status.st_uid}.\n  Hint: rm -r {shlex.quote(str(path))}"
        open_to = S_IWOTH | (S_IWGRP if is_below and _is_shared(status.st_gid) else 0)
        if status.st_mode & open_to and not (status.st_mode & S_ISVTX and not is_below):
            return f"other users can write to {path}.\n  Hint: chmod go-w {shlex.quote(str(path))}"
    return ""


def _is_shared(group: int) -> bool:
    """Return True unless this user is the only member of the group, as of the private group that Linux gives a user."""
    import grp
    import pwd

    try:
        members, owner = grp.getgrgid(group), pwd.getpwuid(os.getuid())
    except KeyError:
        return True
    return owner.pw_gid != group or owner.pw_name != members.gr_name or bool({*members.gr_mem} - {owner.pw_name})


def install_into(folder: Path, requirement: str, *options: str, needs: str = "") -> None:
    """Install a package into a folder, with pip or else uv as configured; an existing install stays.

    `options` are those of pip and uv, such as `--no-deps`, and further packages; `needs` must be there afterwards.

    Raises:
        MissingPackageError: The install failed and was removed, or another user can write to the existing one.
    """
    if is_whole(folder):
        if reason := distrust(folder):
            raise MissingPackageError(f"{requirement} is not used: {reason}")
        return
    folder.parent.mkdir(parents=True, exist_ok=True)
    unfinished = Path(mkdtemp(prefix="unfinished-", dir=folder.parent))
    try:
        _pip(unfinished, requirement, options)
        if not (unfinished / needs).exists():
            raise MissingPackageError(f"{requirement} was installed and has no {needs}.")
        write_text(unfinished / _DONE, f"{requirement}\n")
        shutil.rmtree(folder, ignore_errors=True)  # left by an interrupted removal
        # In one step: another process sees a whole install or none.
        unfinished.rename(folder)
    except BaseException:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise


def _pip(folder: Path, requirement: str, options: tuple[str, ...]) -> None:
    # Only wheels: to build a source package would run its code.
    target = ["--only-binary=:all:", "--quiet", "--target", str(folder)]
    command = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check", "--no-compile"]
    if find_spec("pip") is None:
        uv = shutil.which("uv")
        if uv is None:
            raise MissingPackageError("neither pip nor uv is here to install it.\n  Hint: python -m ensurepip")
        command = [uv, "pip", "install", "--python", sys.executable]
    try:
        done = subprocess.run(
            [*command, *options, *target, requirement], capture_output=True, text=True, timeout=_PATIENCE, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise MissingPackageError(f"{requirement} was not installed after {_PATIENCE:.0f} s.") from error
    # pip's warnings are on stderr too.
    errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
    if done.returncode:
        why = errors[0] if errors else done.stderr.strip()[-300:]
        raise MissingPackageError(
            f"{requirement} can't be installed: {why}\n  Hint: the index that pip is configured for must have it."
        )


@dataclass(frozen=True)
class Compiler:
    """Wheel with one platform's compiler.

    Args:
        platform: `cuda`, `rocm`, `tpu` or `cpu`.
        requirement: For pip: the release that fits this jaxlib.
        size: Approximate bytes to download; unpacked, three times as much.
        module: Path in the folder that an install has.
        lacks: Requirement that no wheel has; may be empty.
        routines: Wheel that registers the vendor's library calls, such as cuSOLVER: a compiler refuses unregistered
            calls, though it doesn't need the libraries. May be empty.
    """

    platform: str
    requirement: str
    size: int
    module: str
    lacks: str = ""
    routines: str = ""

    @property
    def folder(self) -> Path:
        """Return the install folder, separate for each jaxlib and Python."""
        python = f"py{sys.version_info.major}{sys.version_info.minor}"
        name = self.requirement.replace("==", "-").replace(".*", "")
        return cache_folder() / "compilers" / f"{name}-{python}"

    @property
    def is_installed(self) -> bool:
        return is_whole(self.folder)

    @property
    def lacks_routines(self) -> bool:
        """Return True if the compiler is installed without its wheel of `routines`, as by an older Explorer."""
        module = self.routines.partition("==")[0].replace("-", "_")
        return self.is_installed and bool(module) and not (self.folder / module).is_dir()


def compiler_of(platform: str) -> Compiler:
    """Return the compiler of a platform that fits this jaxlib, or raise MissingCompilerError."""
    jaxlib = version("jaxlib")
    match platform:
        case "cuda":
            routines = f"jax-cuda13-plugin=={jaxlib}"
            wheel = f"jax-cuda13-pjrt=={jaxlib}"
            return Compiler("cuda", wheel, 133_000_000, "jax_plugins/xla_cuda13", routines=routines)
        case "rocm":
            lacks = "AMD's ROCm libraries on this machine (librocblas, libMIOpen, librccl, …)"
            return Compiler("rocm", f"jax-rocm7-pjrt=={jaxlib}", 155_000_000, "jax_plugins/xla_rocm7", lacks)
        case "tpu":
            return Compiler("tpu", _libtpu(), 213_000_000, "libtpu")
        case "cpu":
            return Compiler("cpu", f"jaxlib=={jaxlib}", 0, "jaxlib")  # JAX's own
        case _:
            raise MissingCompilerError(f"no compiler for {platform!r} can be installed.")


def _libtpu() -> str:
    """Return the requirement `libtpu==…` of JAX's extra `tpu`, or `libtpu` if unknown; a newer one ends the process."""
    with suppress(PackageNotFoundError):  # JAX may run from a checkout
        for line in requires("jax") or ():
            requirement, _, marker = line.partition(";")
            if requirement.startswith("libtpu") and "tpu" in marker:
                return requirement.replace(" ", "")
    return "libtpu"


def path_of(compiler: Compiler) -> Sequence[str]:
    """Return what the compiler process adds to `sys.path`: the install folder, or nothing if JAX's environment has it.

    Raises:
        MissingCompilerError: The compiler is not installed, or another user can write to its folder.
    """
    if compiler.is_installed:
        if reason := distrust(compiler.folder):
            raise MissingCompilerError(f"the compiler for {compiler.platform} is not used: {reason}")
        return (str(compiler.folder),)
    if _stands_beside_jax(compiler):
        return ()
    raise MissingCompilerError(
        f"the compiler for {compiler.platform} is not installed: {compiler.requirement}, about "
        f"{compiler.size / 1e6:.0f} MB, into a folder of Explorer's own"
        f"{f'; it also needs {compiler.lacks}' if compiler.lacks else ''}.\n"
        f"  Hint: python -m explorer targets install {compiler.platform}"
    )


def _stands_beside_jax(compiler: Compiler) -> bool:
    try:
        return find_spec(compiler.module.replace("/", ".")) is not None
    except (ImportError, ValueError):
        return False


def is_available(platform: str) -> bool:
    """Return True if a platform can be compiled for without installing anything."""
    compiler = compiler_of(platform)
    return (compiler.is_installed and not distrust(compiler.folder)) or _stands_beside_jax(compiler)


def install(platform: str, say: Callable[[str], None] = print) -> Path:
    """Install a compiler (`cuda`, `rocm`, `tpu`) into Explorer's own folder, with pip as configured; return the folder.

    `say` receives progress messages, the size first.

    Raises:
        MissingCompilerError: The platform is `cpu`, which needs no install, or pip failed; nothing is left behind.
    """
    compiler = compiler_of(platform)
    if platform == "cpu":
        raise MissingCompilerError("the compiler for CPUs is JAX's own, and there already.")
    if compiler.lacks_routines:
        say(f"{compiler.requirement} lacks {compiler.routines}, and is installed again with it")
        shutil.rmtree(compiler.folder)
    if compiler.is_installed:
        say(f"{compiler.requirement} is there already: {compiler.folder}")
        return compiler.folder
    say(f"{compiler.requirement}: about {compiler.size / 1e6:.0f} MB to download, three times as much unpacked")
    if compiler.lacks:
        say(f"it also needs {compiler.lacks}")
    try:
        besides = [compiler.routines] if compiler.routines else []
        install_into(compiler.folder, compiler.requirement, "--no-deps", *besides, needs=compiler.module)
    except MissingPackageError as error:
        raise MissingCompilerError(str(error)) from None
    say(f"installed: {compiler.folder}")
    return compiler.folder


def remove(platform: str) -> bool:
    """Remove a platform's compiler; return True if there was one."""
    folder = compiler_of(platform).folder
    was_there = folder.exists()
    shutil.rmtree(folder, ignore_errors=True)
    return was_there


def platform_of(text: str) -> str:
    """Return the platform (`cuda`, `rocm`, `tpu`, `cpu`) that a compiler's or a device's name means.

    Raise UnknownTargetError if it is neither.
    """
    name = text.strip().lower()
    return name if name in ("cuda", "rocm", "tpu") else parse_target(name).platform
