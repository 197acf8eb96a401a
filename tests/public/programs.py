"""The public programs, by name.

A builder returns a compiled function and its arguments, the same ones each time. Libraries are imported by the builder.
"""

from tests.public import models, science

PROGRAMS = {
    name: builder
    for module in (science, models)
    for name, builder in vars(module).items()
    if getattr(builder, "__module__", "") == module.__name__ and not name.startswith("_")
}
DEVICES = {"ring_attention": 4}
"""Number of devices of the programs that run on several."""
