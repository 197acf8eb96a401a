"""`python -m tests.corpus_links [MODEL…] [-v | --json]`: how many links are right, as a table; -v: which are wrong."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict

_FLAG = "--xla_force_host_platform_device_count=4"
os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {_FLAG}".strip()

from tests.corpus_links.models import MODELS  # noqa: E402
from tests.corpus_links.score import generated_outcomes, outcomes, table, totals, wrong_links  # noqa: E402

SEEDS = range(16)


def main(options: list[str]) -> None:
    names = [name for name in options if not name.startswith("-")]
    models = list(outcomes(MODELS, names))
    generated = [] if names else list(generated_outcomes(SEEDS))
    if "--json" in options:
        print(json.dumps([asdict(outcome) for outcome in models]))
        return
    print(f"{table(models)}\n{totals(models)}")
    if generated:
        print(f"\n{table(generated)}")
    if "-v" in options:
        print("\n".join(line for outcome in (*models, *generated) for line in wrong_links(outcome)))


if __name__ == "__main__":
    main(sys.argv[1:])
