"""Compilation ahead of time, Tripy-style: describe the inputs, get an executable."""

from explorer.aot.compile import compile
from explorer.aot.executable import Executable, Specialization
from explorer.aot.inputs import InputInfo

__all__ = ["Executable", "InputInfo", "Specialization", "compile"]
