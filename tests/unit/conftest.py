"""What all unit tests share."""

from hypothesis import settings

# How long an example takes depends on the machine's other work: time is measured in tests/benchmarks, not here.
settings.register_profile("explorer", deadline=None, print_blob=True)
settings.load_profile("explorer")
