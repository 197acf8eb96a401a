"""Compilers in a folder of their own, by the real pip, from wheels made here."""

import os
import shutil
import subprocess
import sys
import zipfile
from importlib.metadata import version
from pathlib import Path

import jax.numpy as jnp
import pytest

import explorer as ex
from explorer.__main__ import main
from explorer.hardware.installed import compiler_of, install, install_into, is_available, path_of, remove
from explorer.hardware.process import refusal


def wheel(folder: Path, name: str, release: str, files: dict[str, str]) -> None:
    """A wheel as pip wants it, of pure Python."""
    stem = f"{name.replace('-', '_')}-{release}"
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {release}\nRequires-Dist: nothing-of-this-name\n"
    described = "Wheel-Version: 1.0\nGenerator: a test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    files = {**files, f"{stem}.dist-info/METADATA": metadata, f"{stem}.dist-info/WHEEL": described}
    record = "".join(f"{path},,\n" for path in [*files, f"{stem}.dist-info/RECORD"])
    with zipfile.ZipFile(folder / f"{stem}-py3-none-any.whl", "w") as archive:
        for path, text in {**files, f"{stem}.dist-info/RECORD": record}.items():
            archive.writestr(path, text)


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's pip looks for wheels in this folder alone, and compilers go below another."""
    found = tmp_path / "wheels"
    found.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(found))
    monkeypatch.setenv("EXPLORER_CACHE_DIR", str(tmp_path / "cache"))
    return found


@pytest.mark.slow
def test_a_compiler_is_installed_alone_and_the_session_never_sees_it(index: Path, capsys) -> None:
    wheel(index, "jax-cuda13-pjrt", version("jaxlib"), {"jax_plugins/xla_cuda13/__init__.py": ""})
    wheel(index, "jax-cuda13-plugin", version("jaxlib"), {"jax_cuda13_plugin/__init__.py": ""})
    assert not is_available("cuda")
    assert main(["targets", "install", "h100"]) == 0
    said = capsys.readouterr().out
    assert said.startswith(f"jax-cuda13-pjrt=={version('jaxlib')}: about 133 MB")
    folder = compiler_of("cuda").folder
    assert (folder / "jax_plugins" / "xla_cuda13").is_dir()
    assert is_available("cuda")
    assert main(["targets", "install", "cuda"]) == 0
    assert "is there already" in capsys.readouterr().out
    # As an earlier Explorer installed it.
    shutil.rmtree(folder / "jax_cuda13_plugin")
    assert is_available("cuda")
    assert main(["targets", "install", "cuda"]) == 0
    assert "is installed again with it" in capsys.readouterr().out
    assert (folder / "jax_cuda13_plugin").is_dir()
    looked = subprocess.run(
        [sys.executable, "-c", "import jax_plugins.xla_cuda13"], capture_output=True, text=True, check=False
    )
    assert looked.returncode != 0
    assert remove("cuda")
    assert not remove("cuda")
    assert not is_available("cuda")


@pytest.mark.slow
def test_what_cannot_be_installed_leaves_nothing_behind_and_says_why(index: Path) -> None:
    with pytest.raises(ex.errors.MissingCompilerError, match="jax-cuda13-pjrt"):
        install("cuda", say=lambda text: None)
    wheel(index, "jax-cuda13-plugin", version("jaxlib"), {"jax_cuda13_plugin/__init__.py": ""})
    wheel(index, "jax-cuda13-pjrt", version("jaxlib"), {"something_else.py": ""})
    with pytest.raises(ex.errors.MissingCompilerError, match="has no jax_plugins/xla_cuda13"):
        install("cuda", say=lambda text: None)
    assert list(compiler_of("cuda").folder.parent.iterdir()) == []


def test_a_compiler_is_not_used_where_another_user_can_write(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = index.parent / "cache"
    folder = compiler_of("cuda").folder
    (folder / "jax_plugins" / "xla_cuda13").mkdir(parents=True)
    (folder / "jax_plugins" / "xla_cuda13" / "__init__.py").write_text("raise SystemExit('this ran')")
    (folder / "installed-by-explorer").write_text("")
    for path in (folder, folder.parent, cache):
        path.chmod(0o755)
    assert is_available("cuda")
    assert path_of(compiler_of("cuda")) == (str(folder),)
    for path in (folder, folder.parent, cache, index.parent):  # the last is above the cache
        for mode in (0o757, 0o777):
            path.chmod(mode)
            assert not is_available("cuda")
            with pytest.raises(ex.errors.MissingCompilerError, match=f"other users can write to {path}") as raised:
                ex.explore(jnp.sin, jnp.ones(3), target="h100")
            assert f"chmod go-w {path}" in str(raised.value)
            subprocess.run(str(raised.value).partition("Hint: ")[2], shell=True, check=True)  # the hint works
            assert is_available("cuda")
    folder.chmod(0o1777)  # a sticky bit keeps others from removing files, and not from adding some
    assert not is_available("cuda")
    folder.chmod(0o755)
    index.parent.chmod(0o1777)  # as /tmp is
    assert is_available("cuda")


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="only root can give a folder away")
def test_a_compiler_of_another_user_is_not_used(index: Path) -> None:
    folder = compiler_of("cuda").folder
    folder.mkdir(parents=True)
    (folder / "installed-by-explorer").write_text("")
    assert is_available("cuda")
    for path in (folder, folder.parent, index.parent / "cache"):
        os.chown(path, 12345, -1)
        assert not is_available("cuda")
        with pytest.raises(ex.errors.MissingCompilerError, match="belongs to another user, number 12345"):
            path_of(compiler_of("cuda"))
        with pytest.raises(ex.errors.MissingPackageError, match="is not used"):
            install_into(folder, "jax-cuda13-pjrt")
        os.chown(path, 0, -1)
    os.chown(folder, -1, 12345)
    folder.chmod(0o775)  # a group that this user shares
    assert not is_available("cuda")


def test_without_a_compiler_the_command_that_installs_it_is_named_before_anything_is_traced(index: Path) -> None:
    traced = []

    def function(x):
        traced.append(x)
        return x

    with pytest.raises(ex.errors.MissingCompilerError, match="python -m explorer targets install cuda"):
        ex.explore(function, jnp.ones(3), target="h100")
    assert traced == []


@pytest.mark.parametrize(("words", "said"), [(["install"], "install what"), (["list", "h100"], "list takes no target")])
def test_the_command_says_what_it_lacks(words: list[str], said: str, capsys) -> None:
    assert main(["targets", *words]) == 1
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("has_routines", "hint"), [(False, "python -m explorer targets install cuda"), (True, "registers are missing")]
)
def test_a_routine_that_the_compiler_does_not_know_is_named_with_what_to_do(
    has_routines: bool, hint: str, index: Path
) -> None:
    folder = compiler_of("cuda").folder
    (folder / "jax_cuda13_plugin" if has_routines else folder).mkdir(parents=True)
    (folder / "installed-by-explorer").touch()
    error = "NOT_FOUND: No FFI handler registered for cusolver_potrf_ffi on a platform CUDA (canonical cuda)"
    first, second = refusal("cuda", error).splitlines()
    assert first.startswith("the program calls cusolver_potrf_ffi, a routine that its compiler doesn't know")
    assert hint in second
    assert refusal("cuda", "INTERNAL: something else") == "INTERNAL: something else"


def test_a_program_that_does_not_fit_is_refused_in_words_with_the_call_that_finds_what_does() -> None:
    said = "RESOURCE_EXHAUSTED: Ran out of memory in memory space hbm. Used 16.50G of 15.75G hbm."
    text = refusal("tpu", rf"{said} [type.googleapis.com/tensorflow.tpu.CompilationResultProto='\x08\x08']")
    assert text.splitlines()[0] == said
    assert "explorer.largest_that_fits" in text
    assert "googleapis" not in text
