"""Ledgers of 250 ways to compile again, and the reasons and cures that were given for each of their calls.

`tests/corpus_recompiles` runs these programs, and proves of each reason that it is the true one and of each cure that
it works; that takes minutes. What a reason is made from stands in a ledger: so the fast tests explain the saved calls
anew, and what is another than when the corpus was run last is seen. What changes one of them on purpose writes them
anew,

    python -m tests.support.reasons

which prints what is another; the corpus judges whether it is right.
"""

import gzip
import itertools
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

import explorer as ex
from explorer.analysis.recompiles.reasons import History, explain, explain_raised

FOLDER = Path(__file__).parent


def ledgers() -> dict[str, ex.Ledger]:
    """The ledgers by the name of their scenario."""
    by_name: dict[str, list[str]] = json.loads(gzip.decompress((FOLDER / "ledgers.json.gz").read_bytes()))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ledger.jsonl"
        return {name: _load(path, lines) for name, lines in by_name.items()}


def keep_ledgers(ledgers: dict[str, list[str]]) -> None:
    """Write them down, the same bytes for the same lines."""
    (FOLDER / "ledgers.json.gz").write_bytes(gzip.compress(json.dumps(ledgers, indent=0).encode(), mtime=0))


def _load(path: Path, lines: list[str]) -> ex.Ledger:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return ex.Ledger.load(path, storm=2)


def kept() -> list[str]:
    """The lines that were written down."""
    return gzip.decompress((FOLDER / "reasons.txt.gz").read_bytes()).decode().splitlines()


def keep(lines: list[str]) -> None:
    """Write them down, the same bytes for the same lines."""
    (FOLDER / "reasons.txt.gz").write_bytes(gzip.compress("\n".join(lines).encode(), mtime=0))


def explained() -> list[str]:
    """Why each call of each ledger compiled and what to do, and what is said of the whole ledger; a fact a line."""
    return [
        f"{name}: {line}"
        for name, ledger in ledgers().items()
        for fact in [*_reasons(ledger), *_summaries(ledger)]
        for line in fact.splitlines()
    ]


def _reasons(ledger: ex.Ledger) -> Iterator[str]:
    """Why, from the keys of this call and of those before it alone."""
    history = History()
    for number, group in itertools.groupby(ledger.events, lambda event: event.call):
        events = list(group)
        if (key := events[0].key) is None:
            continue
        happened = frozenset(event.kind for event in events if event.kind != "miss")
        earlier = history.earlier(key)
        if events[0].error and happened == frozenset({"trace"}):
            reason = explain_raised(key, earlier, events[0].error)
        else:
            reason = explain(key, earlier, happened, history.value_counts(key))
        if not events[0].error:
            history.add(key)
        yield f"call {number} {events[0].function} {reason.kind} {reason.leaf} {reason.before} {reason.after}"
        yield f"why: {reason.text}"
        yield f"cure: {reason.fix}"


def _summaries(ledger: ex.Ledger) -> Iterator[str]:
    yield ledger.to_text()
    yield from (f"storm: {storm}" for storm in ledger.storms)
    yield repr(ledger.varying())
