"""What runs in a worker: one item of some work, under the settings that the session has, and how it travels.

What goes to another process and comes back travels between the processes of one person's executor, and is never kept in
a file. A function of a notebook or a lambda goes by value, as `cloudpickle` writes it: the standard library's pickle
writes a function's name alone, which the other process can't find. JAX's persistent cache is in a folder for as long as
something is compiled: what one process compiled, others load.
"""

from __future__ import annotations

import os
import pickle
import platform
import threading
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import version
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import jax
import jax.numpy as jnp
from jax.experimental.compilation_cache import compilation_cache

from explorer._jax.arguments import is_jitted, jit_options
from explorer._jax.settings import named_settings, settings_by_name, with_settings
from explorer.errors import ArgumentsError, ExplorerError, MissingPackageError
from explorer.files import capture as capture_file
from explorer.model.capture import Capture

Item = tuple[str, int]
"""What to do, and with which: `("compile", 3)`."""
Task = Callable[[Any, Item], Any]
"""Does one item: takes what all items share, and the item. A function of a module, so that a worker finds it."""


@dataclass(frozen=True)
class Work:
    """What a worker needs for any of the items."""

    task: Task  # does one
    shared: Any  # what all of them have in common
    settings: Mapping[str, Any]  # JAX's, of the session, by name
    cache: str  # the folder of JAX's persistent cache that the session uses; empty if it uses none


@dataclass(frozen=True)
class Worker:
    """A process that did some of the work."""

    host: str  # the machine's name
    process: int  # its number there
    environment: Mapping[str, str]  # its versions and device, of which a program depends


@dataclass(frozen=True)
class Answer:
    """What a worker gives for an item."""

    worker: Worker  # who did it
    value: Any = None  # what came of it
    refusal: ExplorerError | None = None  # why the whole call is wrong, whichever item it is; None if it isn't
    unread: str = ""  # why the worker couldn't read what it was sent; empty if it could


# A worker of Dask's has several threads, and JAX's cache, its settings and what a function prints are the process's.
_one_at_a_time = threading.Lock()
_last: list[tuple[bytes, Work]] = []  # unpacked once for all items: the function stays the same object, as in a session


def pack_work(task: Task, shared: Any, verb: str) -> bytes:
    """Some work of this session's, to be sent to workers.

    Raises:
        ArgumentsError: It can't be sent.
        MissingPackageError: cloudpickle is not installed.
    """
    __tracebackhide__ = True
    return pack(Work(task, shared, named_settings(), user_folder()), verb)


def do_item(packed: bytes, item: Item, attempt: int) -> bytes:
    """Do one item, in a worker."""
    with _one_at_a_time:
        return pack(_answer(packed, item), "a worker")


def _answer(packed: bytes, item: Item) -> Answer:
    try:
        work = _unpacked(packed)
    except Exception as error:  # a module that isn't there, another release of a library
        return Answer(_worker(), unread=f"{type(error).__name__}: {error}")
    try:
        with with_settings(settings_by_name(work.settings)), cache_in(work.cache):
            return Answer(_worker(), work.task(work.shared, item))
    except ExplorerError as error:  # a task keeps what fails for one item alone
        return Answer(_worker(), refusal=error)


def _unpacked(packed: bytes) -> Work:
    if not _last or _last[0][0] != packed:
        _last[:] = [(packed, unpack(packed))]
    return _last[0][1]


def _worker() -> Worker:
    of_jax: Any = jax
    device = of_jax.devices()[0]
    environment: dict[str, str] = {
        "jax": jax.__version__,
        "jaxlib": version("jaxlib"),
        "backend": device.platform,
        "device": device.device_kind,
    }
    return Worker(platform.node(), os.getpid(), environment)


def is_there() -> bool:
    """Does nothing: what a worker that starts at all can do."""
    return True


def pack(value: Any, verb: str) -> bytes:
    """A value with the functions in it; of a capture what `Capture.save` keeps.

    Raises:
        ArgumentsError: Something in it belongs to this process alone: a lock, an open file, an array over several
            devices.
        MissingPackageError: cloudpickle is not installed.
    """
    __tracebackhide__ = True
    buffer = BytesIO()
    try:
        _pickler(buffer).dump(value)
    except (TypeError, AttributeError, pickle.PicklingError, ValueError) as error:
        raise ArgumentsError(
            f"{verb} can't send this function with its arguments to another process: {error}.\n"
            f"  Hint: make what belongs to one process inside the function or in args=; or leave executor= out."
        ) from error
    return buffer.getvalue()


def unpack(data: bytes) -> Any:
    """What `pack` packed."""
    return pickle.loads(data)


def _pickler(buffer: BytesIO) -> Any:
    try:
        import cloudpickle
    except ImportError:
        raise MissingPackageError(
            "executor= sends functions to other processes by cloudpickle, which is not installed.\n"
            "  Hint: pip install cloudpickle."
        ) from None
    base: Any = cloudpickle.Pickler

    class Packer(base):
        def reducer_override(self, obj: Any) -> Any:
            if isinstance(obj, Capture):
                return capture_file.decode, (obj.wire,)
            if isinstance(obj, jax.Array):
                return _array(obj)
            if is_jitted(obj):
                return _jitted(obj)
            if isinstance(obj, ExplorerError):  # the error behind it is the user's own, and may hold anything
                return _error, (type(obj), obj.args, dict(vars(obj)))
            inherited: Any = super()
            return inherited.reducer_override(obj)

    return Packer(buffer, protocol=pickle.HIGHEST_PROTOCOL)


def _jitted(function: Any) -> Any:
    """JAX lets these be pickled, and what comes back can be called and not traced."""
    module, name = function.__module__, function.__qualname__
    if module != "__main__" and _named(module, name) is function:
        return _named, (module, name)
    options = jit_options(function)
    if options is None:
        raise TypeError(f"the jax.jit of {name} places arrays on devices of this process")
    return _jit, (function.__wrapped__, options)


def _named(module: str, name: str) -> Any:
    value: Any = import_module(module)
    for part in name.split("."):
        value = getattr(value, part, None)
    return value


def _jit(function: Any, options: Mapping[str, Any]) -> Any:
    return jax.jit(function, **options)


def _array(array: Any) -> Any:
    if jnp.issubdtype(array.dtype, jax.dtypes.prng_key):  # which pickle refuses
        return _keys, (jax.random.key_data(array), str(jax.random.key_impl(array)))
    devices = len(array.sharding.device_set)
    if devices > 1:  # pickle would bring it back on one device, and the program be another
        raise TypeError(f"an array {array.shape} lies on {devices} devices of this process")
    return NotImplemented


def _keys(data: jax.Array, implementation: str) -> jax.Array:
    return cast("Any", jax.random).wrap_key_data(data, impl=implementation)


def _error(kind: type[ExplorerError], args: tuple[Any, ...], state: dict[str, Any]) -> ExplorerError:
    error = kind.__new__(kind, *args)
    vars(error).update(state)
    return error


_FOLDER = "jax_compilation_cache_dir"
# JAX keeps what took a second to compile; here all of it is wanted once more.
_KEEP_ALL = {"jax_persistent_cache_min_compile_time_secs": 0.0, "jax_persistent_cache_min_entry_size_bytes": -1}


def user_folder() -> str:
    """The folder that the user gave JAX; empty if there is none."""
    config: Any = jax.config
    return str(getattr(config, _FOLDER, None) or "")


@contextmanager
def cache_in(folder: str, keeps_all: bool = False) -> Generator[None]:
    """Have JAX use a folder within; its own again after. Nothing changes where there is no such folder."""
    if not folder or (folder == user_folder() and not keeps_all) or not Path(folder).is_dir():
        yield
        return
    config: Any = jax.config
    wanted = {_FOLDER: folder, **(_KEEP_ALL if keeps_all else {})}
    before = {name: getattr(config, name) for name in wanted}
    _update(wanted)
    try:
        yield
    finally:
        _update(before)


def _update(values: dict[str, Any]) -> None:
    for name, value in values.items():
        jax.config.update(name, value)
    compilation_cache.reset_cache()  # it holds the folder that it was first used with


@contextmanager
def program_folders(count: int) -> Generator[str]:
    """A folder with a folder for each of some programs, `0`, `1`, …; it goes with the context.

    Apart, since a program that another one equals would be found in the other's place, and seem to compile in no time.
    """
    with TemporaryDirectory(prefix="explorer-programs-") as folder:
        for at in range(count):
            Path(folder, str(at)).mkdir()
        yield folder
