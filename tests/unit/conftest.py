"""What all unit tests share."""

import os

from hypothesis import settings

# How long an example takes depends on the machine's other work: time is measured in tests/benchmarks, not here.
settings.register_profile("explorer", deadline=None, print_blob=True)
# Where a change is judged the examples are the same each time: new ones are for where somebody can look into them.
settings.register_profile("judged", settings.get_profile("explorer"), derandomize=True)
settings.load_profile("judged" if os.environ.get("EXPLORER_CI") == "1" else "explorer")
