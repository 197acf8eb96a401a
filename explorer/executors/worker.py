"""What runs in a worker: one item of some work, under the settings that the session has."""

from __future__ import annotations

import os
import platform
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import jax

from explorer._jax.settings import named_settings, settings_by_name, with_settings
from explorer.errors import ExplorerError
from explorer.executors.packing import pack, unpack
from explorer.executors.persistent_cache import cache_in, user_folder

Item = tuple[str, int]
"""What to do, and with which: `("compile", 3)`."""
Task = Callable[[Any, Item], Any]
"""Does one item: takes what all items share, and the item. A function of a module, so that a worker finds it."""


@dataclass(frozen=True)
class Work:
    """What a worker needs for any of the items.

    Args:
        task: Does one.
        shared: What all of them have in common.
        settings: JAX's, of the session, by name.
        cache: The folder of JAX's persistent cache that the session uses; empty if it uses none.
    """

    task: Task
    shared: Any
    settings: Mapping[str, Any]
    cache: str


@dataclass(frozen=True)
class Worker:
    """A process that did some of the work.

    Args:
        host: The machine's name.
        process: Its number there.
        environment: Its versions and device, of which a program depends.
    """

    host: str
    process: int
    environment: Mapping[str, str]


@dataclass(frozen=True)
class Answer:
    """What a worker gives for an item.

    Args:
        worker: Who did it.
        value: What came of it.
        refusal: Why the whole call is wrong, whichever item it is; None if it isn't.
        unread: Why the worker couldn't read what it was sent; empty if it could.
    """

    worker: Worker
    value: Any = None
    refusal: ExplorerError | None = None
    unread: str = ""


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
    """Do one item, in a worker.

    Args:
        packed: Of `pack_work`.
        item: Which.
        attempt: How often it was begun before: Dask gives what it was asked before without doing it again.
    """
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
