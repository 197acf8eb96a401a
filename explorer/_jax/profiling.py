"""JAX's profiler, one per process: a session in memory, and the programs that it saw."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib import import_module
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock, get_ident
from typing import Any, cast

import jax
from jax._src import profiler as _profiler

from explorer.errors import ProfilerBusyError

_session: Any
try:
    # Non-public: the public start_trace wraps it. In memory a profile takes 3 ms; through files, 80 ms.
    from jaxlib._profiler import ProfilerSession as _session  # pyright: ignore
except ImportError:  # pragma: no cover - the public way is there
    _session = None

try:
    # The loaded plugins are not public.
    from jaxlib.xla_client import pjrt_plugin_loaded as _is_loaded  # pyright: ignore
except ImportError:  # pragma: no cover - then a plugin counts as loaded where it is installed
    _is_loaded: Any = bool

_TPU_PLUGIN = "libtpu"

_lock = Lock()
_holder = [0]  # the thread that has the lock


def release_profiler() -> None:
    """Reset the profiler after `jax.profiler.stop_trace` raised, which leaves it started, as on a full disk."""
    state: Any = getattr(_profiler, "_profile_state", None)
    with suppress(AttributeError):
        state.reset()


def may_profile() -> bool:
    """Return True if XLA's profiler can start: a TPU plugin of another version than jaxlib's crashes the process.

    Measured: libtpu 0.0.52 with jaxlib 0.10.2, which was made for 0.0.42.
    """
    if not _is_loaded("tpu"):
        return True
    try:
        installed = version(_TPU_PLUGIN)
    except PackageNotFoundError:  # a plugin that came with the machine: it probably fits
        return True
    return fits(installed, requires("jax") or ())


def fits(installed: str, requirements: Iterable[str]) -> bool:
    """Return True if a TPU plugin's version fits JAX's requirements, or they name no version.

    Example:
        >>> fits("0.0.42.1", ['libtpu==0.0.42.*; extra == "tpu"']), fits("0.0.52", ['libtpu==0.0.42.*; extra == "tpu"'])
        (True, False)
    """
    wanted = [match[1] for text in requirements if (match := _WANTED.match(text)) is not None]
    return not wanted or any(f"{installed}.".startswith(start) for start in wanted)


_WANTED = re.compile(rf"{_TPU_PLUGIN}==([\d.]+?\.)\*")


class Recording:
    """A serialized `XSpace`, empty until the session is over, and a remark for the reader, or an empty one."""

    def __init__(self) -> None:
        self.data = b""
        self.note = ""


@contextmanager
def profiling() -> Generator[Recording]:
    """Yield a recording of devices and JAX in this context; afterwards the profiler is free, whatever is raised.

    Threads of this process wait for each other. The tracer of Python calls is off: it costs more than it shows.

    Raises:
        ProfilerBusyError: The user's own trace is running, or this thread records already.
    """
    # The lock isn't reentrant: this thread would wait for itself.
    if _holder[0] == get_ident():
        raise ProfilerBusyError("this thread records a profile already, and a process has only one profiler.")
    with _lock:
        if _is_running():
            raise ProfilerBusyError(_BUSY + "\n  Hint: jax.profiler.stop_trace() ends it.")
        _holder[0] = get_ident()
        try:
            yield from _in_memory() if _session is not None else _in_files()
        finally:
            _holder[0] = 0


_BUSY = "another trace is being recorded in this process, which has only one profiler."


def _is_running() -> bool:
    state: Any = getattr(_profiler, "_profile_state", None)
    return any(getattr(state, name, None) is not None for name in ("session", "profile_session"))


def _options() -> Any:
    options: Any = jax.profiler.ProfileOptions()
    options.host_tracer_level = 1
    options.python_tracer_level = 0
    return options


def _in_memory() -> Iterator[Recording]:
    recording = Recording()
    jax.devices()  # a backend that starts while a session runs is not seen in it
    session = _session(_options())
    try:
        yield recording
    except BaseException:
        # An interrupt too must leave the profiler free; what it recorded is of no use.
        with suppress(Exception):
            session.stop()
        raise
    try:
        recording.data = session.stop()
    except RuntimeError as error:
        if "ALREADY_EXISTS" not in str(error):
            raise
        raise ProfilerBusyError(_BUSY) from error


def _in_files() -> Iterator[Recording]:
    recording = Recording()
    recording.note = "this jaxlib has no profile in memory: it was recorded through files, which takes longer"
    with TemporaryDirectory() as folder:
        jax.profiler.start_trace(folder, profiler_options=_options())
        try:
            yield recording
        finally:
            try:
                jax.profiler.stop_trace()
            except BaseException:
                release_profiler()
                raise
        for path in Path(folder).rglob("*.xplane.pb"):
            recording.data = path.read_bytes()


def read_profile(data: bytes) -> Any:
    """Return the `jax.profiler.ProfileData` of a recording."""
    with warnings.catch_warnings():
        # The first access to an event's stats warns, since Python 3.12, about a class of jaxlib.
        warnings.filterwarnings("ignore", "builtin type event_stats has no __module__", DeprecationWarning)
        profile: Any = cast("Any", jax.profiler).ProfileData.from_serialized_xspace(data)
        events: Iterator[Any] = (event for plane in profile.planes for line in plane.lines for event in line.events)
        first = next(events, None)
        if first is not None:
            _kept.add(cast("type[Any]", type(first.stats)))
    return profile


# jaxlib recreates that class after its collection, and warns again; with warnings as errors the process dies.
_kept: set[type[Any]] = set()


def live_programs(wanted: Mapping[int, str]) -> Mapping[int, Callable[[], str]]:
    """Return, by number, a function that returns the HLO text, for each live program in `wanted` (number to name).

    The number of a program is checked only if other live programs have its name.
    """
    names = set(wanted.values())
    named: dict[str, list[Any]] = {}
    for executable in _executables():
        with suppress(Exception):  # a backend that keeps no module
            name: str = executable.hlo_modules()[0].name
            if name in names:
                named.setdefault(name, []).append(executable)
    texts: dict[int, Callable[[], str]] = {}
    for number, name in wanted.items():
        several = named.get(name, [])
        # The number is read only if programs share a name: it is in the serialized module, which may be large.
        matching = [several[0]] if len(several) == 1 else [e for e in several if _number(e) == number]
        if matching:
            texts[number] = matching[0].get_hlo_text
    return texts


def _executables() -> Iterable[Any]:
    backend: Any = import_module("jax.extend.backend")
    for name in backend.backends():
        with suppress(Exception):  # one that failed to start
            yield from backend.get_backend(name).live_executables()


def _number(executable: Any) -> int:
    """Return field 5, `id`, of the HloModuleProto, which the profiler calls `program_id`; -1 if it is missing."""
    data: bytes = executable.hlo_modules()[0].as_serialized_hlo_module_proto()
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 0:
            value, at = varint(data, at)
            if key >> 3 == 5:
                return value
        elif key & 7 == 2:
            size, at = varint(data, at)
            at += size
        else:
            at += 8 if key & 7 == 1 else 4
    return -1


def varint(data: bytes, at: int) -> tuple[int, int]:
    """Return the varint at `at` and the position after it."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at
