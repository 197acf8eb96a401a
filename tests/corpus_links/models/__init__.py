"""Real programs of many kinds: each is a function here that returns a function and its arguments."""

from collections.abc import Callable
from inspect import getmembers, isfunction
from typing import Any

from tests.corpus_links.models import examples, mathematics, networks, solvers, transforms

MODELS: dict[str, Callable[[], tuple[Any, ...]]] = {
    name: model
    for module in (networks, solvers, mathematics, transforms, examples)
    for name, model in getmembers(module, isfunction)
    if model.__module__ == module.__name__ and not name.startswith("_")
}
