"""Ahead-of-time compilation in the style of Tripy: describe the inputs, get an executable."""

from explorer.aot.compile import Compiler, compile
from explorer.aot.executable import Executable
from explorer.aot.inputs import DimensionInputInfo, InputInfo, NamedDimension, OutputInfo

__all__ = ["Compiler", "DimensionInputInfo", "Executable", "InputInfo", "NamedDimension", "OutputInfo", "compile"]
