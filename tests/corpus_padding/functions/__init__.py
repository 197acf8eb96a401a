"""All functions of the corpus, by families."""

import warnings
from importlib import import_module

from tests.corpus_padding.cases import Case

MODULES = ("numpy_names", "arrays", "numerics", "loops", "losses", "networks", "hard", "libraries")


def cases(*modules: str) -> list[Case]:
    """The cases of these modules, or of all. Those of `libraries` take seconds: layers are set up."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the libraries' own
        loaded = [import_module(f"{__name__}.{module}") for module in modules or MODULES]
    return [case for module in loaded for case in module.CASES]
