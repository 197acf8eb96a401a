"""The user's own text, kept with the capture so that it opens anywhere and later; and which files are theirs."""

from __future__ import annotations

import os
import re
import sysconfig
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Source:
    """One file or notebook cell that a stack goes through.

    Args:
        file: The file name that frames carry.
        label: What a person calls it: `train.py`, `cell [4]`.
        text: All of it.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> def f(x):
        ...     return jnp.sin(x)
        >>> source, = explorer.explore(f, jnp.ones(8)).sources.values()
        >>> source.text.splitlines()[1]
        '    return jnp.sin(x)'
    """

    file: str
    label: str
    text: str

    def __repr__(self) -> str:
        return f"Source({self.label}, {self.text.count(chr(10)):,} lines)"


@lru_cache(maxsize=16_384)  # asked for each frame of a graph; a program has few files
def is_library_file(file: str) -> bool:
    """True if a file is part of Python, of an installed package, of JAX or of Explorer; False for the user's own.

    By its name alone, so it also holds for the files of captures from other machines: a folder `site-packages` or
    `dist-packages`, or the standard library's in its usual places on Unix and Windows. On this machine also by where
    its Python, JAX and Explorer really are, which finds them in unusual places and when they run from a checkout.
    Any other package that is installed in place (`pip install -e`) counts as the user's, who is working on it.

    Args:
        file: As a code object or a frame names it. Notebook cells, `<stdin>` and the like are the user's; frozen
            modules are not, nor is `<string>`, under which `dataclass` and `namedtuple` compile what they generate.

    Example:
        >>> is_library_file("/home/me/.venv/lib/python3.12/site-packages/flax/linen/linear.py")
        True
        >>> is_library_file("/home/me/train.py"), is_library_file("<ipython-input-3-c0ffee>")
        (False, False)
    """
    return file.startswith(_LIBRARY_ROOTS) or _LIBRARY_PATH.search(file) is not None


def library_of(file: str) -> str:
    """The package or module that a library's file belongs to; empty for the user's own.

    Example:
        >>> library_of("/home/me/.venv/lib/python3.12/site-packages/flax/linen/linear.py")
        'flax'
        >>> library_of("/home/me/train.py")
        ''
    """
    if not is_library_file(file):
        return ""
    *_, start = [0, *(match.end() for match in _LIBRARY_PATH.finditer(file))]
    # One that runs from a checkout is known by its folder.
    root = next((root for root in _LIBRARY_ROOTS if not start and file.startswith(root)), "")
    name = os.path.basename(root.rstrip(os.sep)) if root else re.split(r"[/\\]", file[start:])[0]
    return name.removesuffix(".py").strip("<>")


# The standard library: `lib/python3.12/` on Unix; on Windows `Lib\` in a folder that is called after Python or conda
# (`C:\Python312\Lib\`, `miniconda3\envs\ml\Lib\`), for a user may have a folder `Lib` too.
_LIBRARY_PATH = re.compile(
    r"(?:^|(?<=[/\\]))(?:site|dist)-packages[/\\]"
    r"|(?:^|(?<=[/\\]))lib(?:64)?[/\\]python\d+(?:\.\d+)?t?[/\\]"
    r"|(?i:python|conda|miniforge|mambaforge)[^\\]*\\(?:envs\\[^\\]+\\)?Lib\\"
    r"|^<frozen |^<string>$"
)


def _library_roots() -> tuple[str, ...]:
    """The folders of this Python's library and packages, of JAX and of Explorer, as named and as links resolve."""
    paths = sysconfig.get_paths()
    folders = {paths[key] for key in ("stdlib", "platstdlib", "purelib", "platlib")}
    folders.add(str(Path(__file__).parents[1]))
    for package in ("jax", "jaxlib"):
        spec = find_spec(package)  # without importing it: the model is there without JAX too
        folders.update(spec.submodule_search_locations or () if spec else ())
    folders |= {os.path.realpath(folder) for folder in folders}
    return tuple(folder.rstrip(os.sep) + os.sep for folder in sorted(folders))


_LIBRARY_ROOTS = _library_roots()
