"""`python -m tests.corpus_links [MODEL…] [-v]`: how many links are right, as a table; -v: which are wrong."""

from __future__ import annotations

import os
import sys

_FLAG = "--xla_force_host_platform_device_count=4"
os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {_FLAG}".strip()

from tests.corpus_links.models import MODELS  # noqa: E402
from tests.corpus_links.score import outcomes, table, wrong_links  # noqa: E402

if __name__ == "__main__":
    judged = list(outcomes(MODELS, [name for name in sys.argv[1:] if not name.startswith("-")]))
    print(table(judged))
    if "-v" in sys.argv:
        print("\n".join(line for outcome in judged for line in wrong_links(outcome)))
