"""Compilation ahead of time, Tripy-style: describe the inputs, get an executable."""

from explorer.aot.compile import Compiler, compile
from explorer.aot.dimensions import NamedDimension
from explorer.aot.executable import Executable
from explorer.aot.inputs import DimensionInputInfo, InputInfo, OutputInfo

__all__ = ["Compiler", "DimensionInputInfo", "Executable", "InputInfo", "NamedDimension", "OutputInfo", "compile"]
