"""One representation of a function on its way through the compiler, its source, and what compiling took."""

from __future__ import annotations

import os
import re
import sysconfig
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from explorer.model.attribution import Attribution
from explorer.model.declared import cached_property, declared
from explorer.model.graph import Graph


@dataclass(frozen=True, slots=True)
class Source:
    """Source file or notebook cell in a stack.

    Args:
        file: File name, as in stack frames.
        label: Short name: `train.py`, `cell [4]`.
        text: Whole text.

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


@lru_cache(maxsize=16_384)  # called for each frame of a graph; a program has few files
def is_library_file(file: str) -> bool:
    """Return True if a file is part of Python, an installed package, JAX or Explorer; False for user code.

    The name decides, so captures from other machines work too. Library folders are `site-packages`, `dist-packages` and
    the usual places of the standard library on Unix and Windows. On this machine the real locations of Python, JAX and
    Explorer also count, so unusual places and checkouts are found. Any other package that is installed in place
    (`pip install -e`) counts as user code.

    Args:
        file: File name of a code object or a frame. Notebook cells and `<stdin>` are user code. Frozen modules and
            `<string>`, the file of code that `dataclass` and `namedtuple` generate, are library code.

    Example:
        >>> is_library_file("/home/me/.venv/lib/python3.12/site-packages/flax/linen/linear.py")
        True
        >>> is_library_file("/home/me/train.py"), is_library_file("<ipython-input-3-c0ffee>")
        (False, False)
    """
    return file.startswith(_LIBRARY_ROOTS) or _LIBRARY_PATH.search(file) is not None


def library_of(file: str) -> str:
    """Return the name of the package or module that a library file belongs to; empty for user code.

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
    """Return the folders of Python's library and packages, of JAX and of Explorer, each with a trailing separator.

    Symbolic links are included both as named and as resolved.
    """
    paths = sysconfig.get_paths()
    folders = {paths[key] for key in ("stdlib", "platstdlib", "purelib", "platlib")}
    folders.add(str(Path(__file__).parents[1]))
    for package in ("jax", "jaxlib"):
        spec = find_spec(package)  # without importing it: the model is there without JAX too
        folders.update(spec.submodule_search_locations or () if spec else ())
    folders |= {os.path.realpath(folder) for folder in folders}
    # With its separator, a folder is no prefix of another folder's name.
    return tuple(folder.rstrip(os.sep) + os.sep for folder in sorted(folders))


_LIBRARY_ROOTS = _library_roots()


@dataclass(frozen=True)
class Durations:
    """Seconds spent in each step of the compilation.

    Args:
        trace, lower, compile: Seconds of each step; 0 for steps that were not reached.
        reused: Steps whose result JAX had cached, in this process or in its persistent cache. Their seconds are
            those of a cache lookup, not of the step.

    Example:
        >>> import explorer, jax, jax.numpy as jnp
        >>> function = jax.jit(lambda x: jnp.sin(x) * 2)
        >>> first, again = (explorer.explore(function, jnp.ones(8)).durations for _ in range(2))
        >>> sorted(first.done), again.reused, again.done
        (['compile', 'lower', 'trace'], ('trace', 'lower', 'compile'), {})
    """

    trace: float = 0.0
    lower: float = 0.0
    compile: float = 0.0
    reused: tuple[str, ...] = ()

    @property
    def seconds(self) -> Mapping[str, float]:
        """Return the seconds of `trace`, `lower` and `compile`, by name, also of cached steps."""
        return {"trace": self.trace, "lower": self.lower, "compile": self.compile}

    @property
    def done(self) -> Mapping[str, float]:
        """Return the seconds of each step that ran for this compilation, by name, without cached and missing steps."""
        return {step: seconds for step, seconds in self.seconds.items() if seconds and step not in self.reused}


@dataclass(frozen=True, slots=True)
class Constant:
    """An array that the function closed over and the trace baked in: its name in the jaxpr, its type, its bytes.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> table = jnp.arange(1000.0)
        >>> capture = explorer.explore(lambda x: x + table, jnp.ones(1000))
        >>> [(constant.type, constant.bytes) for constant in capture.constants]
        [('f32[1000]', 4000)]
    """

    name: str
    type: str
    bytes: int


class WrittenLine(NamedTuple):
    """One line of a stage's text, without source metadata.

    Args:
        number: Line number in the text, from 0.
        parts: Alternating text and names, starting and ending with text.
        is_end: True if it is empty or closes a block.
        is_of_module: True if it opens or closes the module.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> lines = explorer.explore(jnp.sin, jnp.ones(8)).jaxpr.written_lines
        >>> sine = next(line for line in lines if "sin" in line.text)
        >>> sine.text, sine.without_names
        ('  b:f32[8] = sin a', '  ·:f32[8] = · ·')
    """

    number: int
    parts: tuple[str, ...]
    is_end: bool
    is_of_module: bool

    @property
    def text(self) -> str:
        return "".join(self.parts)

    @property
    def without_names(self) -> str:
        """Return the text with `·` for each name; lines that differ only in names have equal results."""
        return "·".join(self.parts[::2])

    def renamed(self, rename: Callable[[str], str]) -> str:
        """Return the text with each name replaced by the result of `rename`."""
        return "".join(rename(part) if at % 2 else part for at, part in enumerate(self.parts))


@dataclass(eq=False, repr=False)
class Stage:
    """One form of the program: its text, and its graph linked to the text by line.

    Reading is lazy: `read` is called at most once, by the first access to `text` or `graph`.

    Args:
        name: `jaxpr`, `stablehlo`, `hlo`.
        read: Function that returns the text and its graph.
        origin: Stage that `attributed` copied, if any.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> capture = explorer.explore(jnp.sin, jnp.ones(8))
        >>> stage = capture.stage("stablehlo")
        >>> stage.name, "stablehlo.sine" in stage.text, [node.op for node in stage.graph.where("op:sine")]
        ('stablehlo', True, ['stablehlo.sine'])
    """

    name: str
    read: Callable[[], tuple[str, Graph]]
    origin: Stage | None = None

    @cached_property
    def text(self) -> str:
        return self._content[0]

    @cached_property
    def graph(self) -> Graph:
        return self._content[1]

    @cached_property
    def _content(self) -> tuple[str, Graph]:
        # Two threads may read at once. Both use what was stored first: nodes are equal only in one and the same graph.
        content = self.__dict__.setdefault("_content", self.read())
        # Release the source of the text: an executable with its memory.
        self.read = lambda: content
        return content

    @cached_property
    @declared
    def written_lines(self) -> Sequence[WrittenLine]:
        """Return the lines of the text that describe the program, each split into text and names.

        Tables and aliases of source locations are left out.
        """
        ...

    def attributed(self, attribute: Callable[[Graph], Attribution]) -> Stage:
        """Return a copy whose graph gets its `attribution` from `attribute`; text and graph are read only once."""
        origin = self.origin or self

        def read() -> tuple[str, Graph]:
            return origin.text, origin.graph.changed(attribute=attribute)

        return Stage(self.name, read, origin)

    def forget_attribution(self) -> None:
        """Delete the graph's cached `attribution`, the source lines of its nodes; the next access computes it again."""
        if "_content" in self.__dict__:
            self.graph.__dict__.pop("attribution", None)

    def __repr__(self) -> str:
        return f"Stage({self.name!r})"
