"""Record the ledgers again: what a watch saw of each scenario of `tests/corpus_recompiles`.

    python -m tests.support.reasons.record

Only for another format, or for more scenarios: the files stay as they are, so that both ends of JAX and each machine
explain the same calls. What they were explained by then, `python -m tests.support.reasons` writes.
"""

import re
import sysconfig
import tempfile
from dataclasses import replace
from pathlib import Path

import tests.corpus_recompiles.__main__  # noqa: F401 - four devices, and all scenarios

import jax  # isort: skip

import explorer as ex
from tests.corpus_recompiles.causes import CAUSES, Cause
from tests.corpus_recompiles.cures import finish
from tests.support.reasons import keep_ledgers

_HERE = re.compile(
    "|".join(re.escape(f"{folder}/") for folder in (sysconfig.get_path("purelib"), Path(__file__).parents[3]))
)


def recorded(cause: Cause) -> list[str]:
    """The lines of a ledger of one scenario, with times that are the same on each machine and no folder of this one."""
    jax.clear_caches()
    scenario = cause.scenario(False)
    with ex.watch(storm=0) as watched:
        next(scenario)
        finish(scenario)
    ledger = ex.Ledger(limit=None)
    for number, event in enumerate(watched.events):
        ledger.add((replace(event, seconds=0.01 * (number + 1), start=1e9 + number, saved=0.0, thread=""),))
    with tempfile.TemporaryDirectory() as folder:
        ledger.save(path := Path(folder) / "ledger.jsonl")
        return [_HERE.sub("", line) for line in path.read_text(encoding="utf-8").splitlines()]


if __name__ == "__main__":
    keep_ledgers({cause.name: recorded(cause) for cause in CAUSES})
