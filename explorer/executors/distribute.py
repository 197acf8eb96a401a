"""Some work, item by item, on an executor's workers: with progress, cancelled by an interrupt, a lost item done again.

An executor of the standard library is broken for good once one of its processes ends; Dask starts another worker and
gives it the item. Here both come to the same: every item has its answer, or says that its worker ended with it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing import get_context
from typing import Any

from explorer.errors import OptionError, WorkerError
from explorer.executors.worker import Answer, Item, Task, Worker, do_item, is_there, pack_work, unpack

_TICK = 0.5  # seconds between two looks at what is under way
_ATTEMPTS = 3  # of an item whose worker ends each time; Dask makes as many of its own in each
_SPAWN = "ProcessPoolExecutor(2, mp_context=multiprocessing.get_context('spawn'))"
_CANCELLED = "CancelledError"  # of concurrent.futures, asyncio and Dask, which have each their own

Notify = Callable[[float, str], None]


@dataclass(frozen=True)
class Outcome:
    """What became of an item."""

    value: Any = None  # what the task gave; None where it gave nothing
    failure: str = ""  # why it has no value; empty where it has


@dataclass
class Distribution:
    """Work that is given out to workers. `workers` are those that answered so far."""

    executor: Any  # who has the workers
    packed: bytes  # of `pack_work`
    verb: str  # the public function that was called, for errors
    notify: Notify  # called with how much is done, 0 to 1, and in words
    workers: dict[tuple[str, int], Worker] = field(default_factory=dict[tuple[str, int], Worker])
    redone: int = 0
    _own: list[ProcessPoolExecutor] = field(default_factory=list[ProcessPoolExecutor])
    _attempts: dict[Item, int] = field(default_factory=dict[Item, int])

    def run(self, items: Iterable[Item], doing: str = "") -> list[Outcome]:
        """Every item's outcome, in their order.

        Raises:
            ExplorerError: What a task raises of the whole call.
            WorkerError: No worker can start, or none can read what it is sent.
        """
        __tracebackhide__ = True
        wanted = list(items)
        done: dict[Item, Outcome] = {}
        suspects: list[Item] = []
        while waiting := [item for item in wanted if item not in done and item not in suspects]:
            suspects += self._round(waiting, done, len(wanted), doing)
        for item in suspects:  # one of them ends its worker: alone, it is seen which
            for _ in range(_ATTEMPTS - 1):
                if item in done or not self._round([item], done, len(wanted), doing):
                    break
            done.setdefault(item, Outcome(failure=f"its worker process ended, {_ATTEMPTS} times"))
        return [done[item] for item in wanted]

    def alone(self, items: Sequence[Item], doing: str) -> list[Outcome]:
        """The same, one after another, no other item under way meanwhile."""
        __tracebackhide__ = True
        outcomes: list[Outcome] = []
        for at, item in enumerate(items):
            self.notify(at / len(items), f"{doing}: {at:,} of {len(items):,}")
            outcomes += self.run([item])
        return outcomes

    def _round(self, items: Sequence[Item], done: dict[Item, Outcome], whole: int, doing: str) -> list[Item]:
        """Give items out until all are done or the executor breaks; return those that may have broken it."""
        __tracebackhide__ = True
        futures: dict[Future[bytes], Item] = {}
        lost: list[Item] = []
        try:
            for item in items:
                if not self._submit(item, futures):
                    lost.append(item)
            while futures:
                finished, _ = wait(futures, timeout=_TICK, return_when=FIRST_COMPLETED)
                for future in finished:
                    item = futures.pop(future)
                    if not self._take(future, item, done, futures):
                        lost.append(item)
                self._show(futures, len(done), whole, doing)
        except BaseException:  # an interrupt, or an answer that ends the whole: what hasn't begun doesn't
            for future in futures:
                future.cancel()
            raise
        if not lost:
            return []
        order = {item: at for at, item in enumerate(items)}
        begun = sorted(lost, key=lambda item: order[item])[: self._width() + 1]
        self._renew()
        self.redone += len(begun)
        return begun

    def _submit(self, item: Item, futures: dict[Future[bytes], Item]) -> bool:
        __tracebackhide__ = True
        attempt = self._attempts[item] = self._attempts.get(item, -1) + 1
        try:
            futures[self.executor.submit(do_item, self.packed, item, attempt)] = item
        except BrokenExecutor:
            return False
        except RuntimeError as error:
            raise OptionError(f"executor= takes no work: {error}.\n  Hint: one that is not shut down.") from error
        return True

    def _take(
        self, future: Future[bytes], item: Item, done: dict[Item, Outcome], futures: dict[Future[bytes], Item]
    ) -> bool:
        """Keep an item's answer; False if its process ended, and the executor with it."""
        __tracebackhide__ = True
        try:
            data = future.result()
        except BrokenExecutor:
            return False
        except (ImportError, AttributeError) as error:  # before anything of ours runs there
            raise WorkerError(
                f"a worker can't load explorer: {type(error).__name__}: {error}.\n"
                "  Hint: workers need the packages that the session has, at the same releases."
            ) from error
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt) and not future.done():
                raise
            return self._again(error, item, done, futures)
        self._keep(unpack(data), item, done)
        return True

    def _again(
        self, error: BaseException, item: Item, done: dict[Item, Outcome], futures: dict[Future[bytes], Item]
    ) -> bool:
        """Give an item out once more whose worker was lost, as Dask says; after some times it stays lost."""
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
        """How many items a broken executor had given to its processes beside one that waited."""
        return int(getattr(self.executor, "_max_workers", 0) or os.cpu_count() or 1)

    def _renew(self) -> None:
        """A pool of processes in place of one that broke: as wide, started in the same way.

        Raises:
            WorkerError: Its processes end as soon as they start.
        """
        __tracebackhide__ = True
        # What a pool was made with is private to it; a pool of another library's may have none of these.
        context = getattr(self.executor, "_mp_context", None) or get_context("spawn")
        initializer = getattr(self.executor, "_initializer", None)
        arguments = getattr(self.executor, "_initargs", ())
        width = self._width()
        self.close()
        pool = ProcessPoolExecutor(width, mp_context=context, initializer=initializer, initargs=arguments)
        self._own.append(pool)
        self.executor = pool
        try:
            pool.submit(is_there).result()
        except BrokenExecutor as error:
            raise WorkerError(
                "the processes of executor= end as soon as they start.\n  Hint: in a script, what starts them belongs "
                "under `if __name__ == '__main__':`, for each of them runs the script's other lines; what they printed "
                "says more."
            ) from error

    def close(self) -> None:
        """Let go of the processes that were started here."""
        while self._own:
            self._own.pop().shutdown(wait=False, cancel_futures=True)

    def notes(self) -> list[str]:
        """What the reader of a result should know of who made it."""
        notes: list[str] = []
        if self.redone:
            notes.append(f"{self.redone} were begun again, as a worker ended under them")
        kinds = {tuple(worker.environment.items()) for worker in self.workers.values()}
        if len(kinds) > 1:
            texts = sorted(", ".join(value for _, value in kind) for kind in kinds)
            notes.append(f"the workers differ: {'; '.join(texts)}")
        return notes


@contextmanager
def distribution(executor: Any, task: Task, shared: Any, verb: str, notify: Notify) -> Generator[Distribution]:
    """Work on an executor, until it ends.

    Raises:
        OptionError: `executor` is none; or its processes would be forks of this one, which hang in JAX.
        ArgumentsError: The work can't be sent to another process.
    """
    __tracebackhide__ = True
    given = executor
    if hasattr(executor, "get_executor"):  # Dask's client, whose `submit` gives futures of Dask's own
        executor = executor.get_executor()
    if not callable(getattr(executor, "submit", None)):
        raise OptionError(
            f"executor is {type(given).__name__}; allowed is what has `submit` as concurrent.futures.Executor, or "
            f"Dask's client.\n  Hint: executor={_SPAWN}."
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
