"""Work items in other processes, through anything with the interface of `concurrent.futures.Executor`.

`distribution` gives items to workers, with progress, interrupts, and repeats of items whose worker was lost. An
executor of the standard library breaks for good when one of its processes ends; Dask starts another worker for the
item. Here both behave alike: every item gets an answer, or a failure that its worker ended.

Data travels between the processes of one person's executor and is never stored in a file. A function of a notebook or
a lambda is sent by value with `cloudpickle`; the standard library's pickle sends only a name, which the other process
can't find. During a compile JAX's persistent cache is in a folder: what one process compiled, others load.
"""

from __future__ import annotations

import os
import pickle
import platform
import threading
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from importlib.metadata import version
from io import BytesIO
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import jax
import jax.numpy as jnp
from jax.experimental.compilation_cache import compilation_cache

from explorer._jax.arguments import is_jitted, jit_options
from explorer._jax.settings import named_settings, settings_by_name, with_settings
from explorer.errors import ArgumentsError, ExplorerError, MissingPackageError, OptionError, WorkerError
from explorer.files import capture as capture_file
from explorer.model.capture import Capture

_TICK = 0.5  # seconds between progress updates
_ATTEMPTS = 3  # for an item whose worker ends each time; Dask makes as many again in each
_SPAWN = "ProcessPoolExecutor(2, mp_context=multiprocessing.get_context('spawn'))"
_CANCELLED = "CancelledError"  # concurrent.futures, asyncio and Dask each have a class of this name

Notify = Callable[[float, str], None]
Item = tuple[str, int]
"""Action and index: `("compile", 3)`."""
Task = Callable[[Any, Item], Any]
"""Runs one item, given the shared data and the item. A module's function, so that a worker can import it."""


@dataclass(frozen=True)
class Work:
    task: Task
    shared: Any  # data of all items
    settings: Mapping[str, Any]  # the session's JAX settings, by name
    cache: str  # folder of the session's persistent cache of JAX, or empty


@dataclass(frozen=True)
class Worker:
    host: str  # name of the machine
    process: int  # process id
    environment: Mapping[str, str]  # versions and device, which a program depends on


@dataclass(frozen=True)
class Answer:
    worker: Worker
    value: Any = None  # the task's result
    refusal: ExplorerError | None = None  # error that holds for the whole call
    unread: str = ""  # reason why the worker couldn't unpack the work


@dataclass(frozen=True)
class Outcome:
    value: Any = None  # the task's result
    failure: str = ""  # reason why there is no value


@dataclass
class Distribution:
    """Work that is distributed to workers. `workers` are those that have answered."""

    executor: Any
    packed: bytes  # of `pack_work`
    verb: str  # the public function that was called, for errors
    notify: Notify  # called with the share done, 0 to 1, and a text
    workers: dict[tuple[str, int], Worker] = field(default_factory=dict[tuple[str, int], Worker])
    redone: int = 0
    _own: list[ProcessPoolExecutor] = field(default_factory=list[ProcessPoolExecutor])
    _attempts: dict[Item, int] = field(default_factory=dict[Item, int])

    def run(self, items: Iterable[Item], doing: str = "") -> list[Outcome]:
        """Return every item's outcome, in order."""
        __tracebackhide__ = True
        wanted = list(items)
        done: dict[Item, Outcome] = {}
        suspects: list[Item] = []
        while waiting := [item for item in wanted if item not in done and item not in suspects]:
            # An item that may have ended its worker waits, so that it can't stop the others again.
            suspects += self._round(waiting, done, len(wanted), doing)
        for item in suspects:  # one of them ends its worker: run alone, it shows which
            for _ in range(_ATTEMPTS - 1):
                if item in done or not self._round([item], done, len(wanted), doing):
                    break
            done.setdefault(item, Outcome(failure=f"its worker process ended, {_ATTEMPTS} times"))
        return [done[item] for item in wanted]

    def alone(self, items: Sequence[Item], doing: str) -> list[Outcome]:
        __tracebackhide__ = True
        outcomes: list[Outcome] = []
        for at, item in enumerate(items):
            self.notify(at / len(items), f"{doing}: {at:,} of {len(items):,}")
            outcomes += self.run([item])
        return outcomes

    def _round(self, items: Sequence[Item], done: dict[Item, Outcome], whole: int, doing: str) -> list[Item]:
        """Submit items until all are done or the executor breaks; return those that may have broken it."""
        __tracebackhide__ = True
        futures: dict[Future[bytes], Item] = {}
        lost: list[Item] = []
        try:
            for item in items:
                if not self._submit(item, futures):
                    lost.append(item)
            while futures:
                # With a timeout, so that progress is shown also while no item finishes.
                finished, _ = wait(futures, timeout=_TICK, return_when=FIRST_COMPLETED)
                for future in finished:
                    item = futures.pop(future)
                    if not self._take(future, item, done, futures):
                        lost.append(item)
                self._show(futures, len(done), whole, doing)
        except BaseException:  # an interrupt, or an answer that ends the whole call: cancel waiting items
            for future in futures:
                future.cancel()
            raise
        if not lost:
            return []
        order = {item: at for at, item in enumerate(items)}
        # Items start in order, so only the first of them can have been running.
        begun = sorted(lost, key=lambda item: order[item])[: self._width() + 1]
        self._renew()
        self.redone += len(begun)
        return begun

    def _submit(self, item: Item, futures: dict[Future[bytes], Item]) -> bool:
        __tracebackhide__ = True
        attempt = self._attempts[item] = self._attempts.get(item, -1) + 1
        try:
            # With the attempt: Dask answers an equal task from its memory.
            futures[self.executor.submit(do_item, self.packed, item, attempt)] = item
        except BrokenExecutor:
            return False
        except RuntimeError as error:
            raise OptionError(
                f"executor= accepts no work: {error}.\n  Hint: pass an executor that is not shut down."
            ) from error
        return True

    def _take(
        self, future: Future[bytes], item: Item, done: dict[Item, Outcome], futures: dict[Future[bytes], Item]
    ) -> bool:
        """Store an item's answer and return True; return False if its process ended, and the executor with it."""
        __tracebackhide__ = True
        try:
            data = future.result()
        except BrokenExecutor:
            return False
        except (ImportError, AttributeError) as error:  # unpickling `do_item` failed in the worker
            raise WorkerError(
                f"a worker can't load explorer: {type(error).__name__}: {error}.\n"
                "  Hint: workers need the packages that the session has, at the same releases."
            ) from error
        except BaseException as error:
            # The user's interrupt, not one that a worker reports: that is the future's own.
            if isinstance(error, KeyboardInterrupt) and (not future.done() or future.exception() is not error):
                raise
            return self._again(error, item, done, futures)
        self._keep(unpack(data), item, done)
        return True

    def _again(
        self, error: BaseException, item: Item, done: dict[Item, Outcome], futures: dict[Future[bytes], Item]
    ) -> bool:
        """Submit an item again whose worker was lost, as Dask reports it, or record a failure after three times.

        Return False if the executor is broken, else True.

        Raises:
            WorkerError: The executor cancelled the item.
        """
        if type(error).__name__ == _CANCELLED:
            raise WorkerError(f"{self.verb}'s work was cancelled by the executor: it was shut down.") from error
        if self._attempts[item] + 1 < _ATTEMPTS:
            self.redone += 1
            return self._submit(item, futures)
        done[item] = Outcome(failure=f"its worker was lost, {_ATTEMPTS} times: {type(error).__name__}: {error}")
        return True

    def _keep(self, answer: Answer, item: Item, done: dict[Item, Outcome]) -> None:
        __tracebackhide__ = True
        if answer.unread:
            raise WorkerError(
                f"a worker can't read what it was sent: {answer.unread}.\n"
                "  Hint: workers need the packages that the session has, at the same releases, and the modules of the "
                "function."
            )
        if answer.refusal is not None:
            raise answer.refusal
        self.workers[answer.worker.host, answer.worker.process] = answer.worker
        done[item] = Outcome(answer.value)

    def _show(self, futures: dict[Future[bytes], Item], done: int, whole: int, doing: str) -> None:
        if whole > 1:
            self.notify(done / whole, f"{doing}: {done:,} of {whole:,}, on {len(self.workers) or 'no'} workers so far")

    def _width(self) -> int:
        """Return the executor's number of processes, or this machine's cores if it has no such number."""
        return int(getattr(self.executor, "_max_workers", 0) or os.cpu_count() or 1)

    def _renew(self) -> None:
        """Replace a broken pool of processes by one of the same width and start method."""
        __tracebackhide__ = True
        # These attributes are private to the standard library; pools of other libraries may lack them.
        context = getattr(self.executor, "_mp_context", None) or get_context("spawn")
        initializer = getattr(self.executor, "_initializer", None)
        arguments = getattr(self.executor, "_initargs", ())
        width = self._width()
        self.close()
        pool = ProcessPoolExecutor(width, mp_context=context, initializer=initializer, initargs=arguments)
        self._own.append(pool)
        self.executor = pool
        try:
            # Processes that can't start must fail here, not once for each item.
            pool.submit(is_there).result()
        except BrokenExecutor as error:
            raise WorkerError(
                "the processes of executor= end as soon as they start.\n  Hint: in a script, start them under "
                "`if __name__ == '__main__':`, because each of them runs the script's other lines; their own output "
                "has the details."
            ) from error

    def close(self) -> None:
        while self._own:
            self._own.pop().shutdown(wait=False, cancel_futures=True)

    def notes(self) -> list[str]:
        notes: list[str] = []
        if self.redone:
            notes.append(f"{self.redone} were started again, because their worker ended")
        kinds = {tuple(worker.environment.items()) for worker in self.workers.values()}
        if len(kinds) > 1:
            texts = sorted(", ".join(value for _, value in kind) for kind in kinds)
            notes.append(f"the workers differ: {'; '.join(texts)}")
        return notes


@contextmanager
def distribution(executor: Any, task: Task, shared: Any, verb: str, notify: Notify) -> Generator[Distribution]:
    """Yield the distribution of a task's items to an executor's workers; raise OptionError if that can't be."""
    __tracebackhide__ = True
    given = executor
    if hasattr(executor, "get_executor"):  # Dask's client, whose own `submit` returns another kind of future
        executor = executor.get_executor()
    if not callable(getattr(executor, "submit", None)):
        raise OptionError(
            f"executor is {type(given).__name__}; allowed is anything with `submit`, as concurrent.futures.Executor "
            f"has, or Dask's client.\n  Hint: executor={_SPAWN}."
        )
    context = getattr(executor, "_mp_context", None)
    if context is not None and context.get_start_method() == "fork":
        raise OptionError(
            "executor forks this process, and JAX has threads here that a fork would wait for for ever.\n"
            f"  Hint: executor={_SPAWN}."
        )
    work = Distribution(executor, pack_work(task, shared, verb), verb, notify)
    try:
        yield work
    finally:
        work.close()


# In a worker --------------------------------------------------------------------------------------------------------

# A Dask worker has several threads, but JAX's cache and settings and a function's prints belong to the process.
_one_at_a_time = threading.Lock()
_last: list[tuple[bytes, Work]] = []  # unpacked once for all items, so that the function stays the same object


def pack_work(task: Task, shared: Any, verb: str) -> bytes:
    __tracebackhide__ = True
    return pack(Work(task, shared, named_settings(), user_folder()), verb)


def do_item(packed: bytes, item: Item, attempt: int) -> bytes:
    with _one_at_a_time:
        return pack(_answer(packed, item), "a worker")


def _answer(packed: bytes, item: Item) -> Answer:
    try:
        work = _unpacked(packed)
    except Exception as error:  # a missing module, another release of a library
        return Answer(_worker(), unread=f"{type(error).__name__}: {error}")
    try:
        with with_settings(settings_by_name(work.settings)), cache_in(work.cache):
            return Answer(_worker(), work.task(work.shared, item))
    except ExplorerError as error:  # tasks return failures of single items, and raise those of the whole call
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
    return True


def pack(value: Any, verb: str) -> bytes:
    """Return the pickle of a value, with its functions' code and captures as files; ArgumentsError if impossible."""
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
    # Only data of this person's own executor comes here, never a file's.
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
            if isinstance(obj, ExplorerError):  # its `__cause__` is the user's and may not be picklable
                return _error, (type(obj), obj.args, dict(vars(obj)))
            inherited: Any = super()
            return inherited.reducer_override(obj)

    return Packer(buffer, protocol=pickle.HIGHEST_PROTOCOL)


def _jitted(function: Any) -> Any:
    # JAX's own pickling returns a function that can be called but not traced.
    module, name = function.__module__, function.__qualname__
    # A worker has another `__main__`.
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
    if jnp.issubdtype(array.dtype, jax.dtypes.prng_key):  # pickle refuses keys
        return _keys, (jax.random.key_data(array), str(jax.random.key_impl(array)))
    devices = len(array.sharding.device_set)
    if devices > 1:  # pickle would restore it on one device, which changes the program
        raise TypeError(f"an array {array.shape} lies on {devices} devices of this process")
    return NotImplemented


def _keys(data: jax.Array, implementation: str) -> jax.Array:
    return cast("Any", jax.random).wrap_key_data(data, impl=implementation)


def _error(kind: type[ExplorerError], args: tuple[Any, ...], state: dict[str, Any]) -> ExplorerError:
    # Past `__init__`, which may take other arguments than `args`.
    error = kind.__new__(kind, *args)
    vars(error).update(state)
    return error


_FOLDER = "jax_compilation_cache_dir"
# By default JAX caches only programs that took a second to compile; here all are needed again.
_KEEP_ALL = {"jax_persistent_cache_min_compile_time_secs": 0.0, "jax_persistent_cache_min_entry_size_bytes": -1}


def user_folder() -> str:
    """Return the user's folder of JAX's persistent cache, or an empty text."""
    config: Any = jax.config
    return str(getattr(config, _FOLDER, None) or "")


@contextmanager
def cache_in(folder: str, keeps_all: bool = False) -> Generator[None]:
    """Have JAX use a cache folder within the context. Nothing changes if the folder doesn't exist."""
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
    compilation_cache.reset_cache()  # it keeps the folder of its first use


@contextmanager
def program_folders(count: int) -> Generator[str]:
    """Yield a temporary folder with the subfolders `0`, `1`, …, one for each program.

    They are separate because a program that equals another would be loaded from the cache, as if it compiled in no
    time.
    """
    with TemporaryDirectory(prefix="explorer-programs-") as folder:
        for at in range(count):
            Path(folder, str(at)).mkdir()
        yield folder
