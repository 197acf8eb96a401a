"""`python -m tests.corpus_sharding planted|clean [names]`: what lint says of each program, a line of JSON for each.

In a process of its own: only a new one can have eight simulated devices.
"""

import json
import os
import sys

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"

import explorer as ex
from explorer.pitfalls.rule_sharding import SHARDED
from tests.corpus_sharding.clean import CLEAN
from tests.corpus_sharding.planted import PLANTED


def main(kind: str, names: list[str]) -> None:
    for program in PLANTED if kind == "planted" else CLEAN:
        if names and program.name not in names:
            continue
        function, *args = program.make()
        findings = ex.lint(function, *args, rules=SHARDED)
        outcome = {
            "name": program.name,
            "rule": program.rule,
            "marker": program.marker,
            "faults": [*findings.faults, *filter(None, [findings.failure])],
            "found": [[finding.rule, finding.severity, finding.text] for finding in findings],
        }
        print(json.dumps(outcome), flush=True)


main(sys.argv[1], sys.argv[2:])
