# The list of public names: type checkers read it, and `explorer/__init__.py` imports each name at first use.
from explorer import compat as compat
from explorer import errors as errors
from explorer import types as types
from explorer.analysis.diff.diff import diff as diff
from explorer.aot import Executable as Executable
from explorer.aot import InputInfo as InputInfo
from explorer.aot import NamedDimension as NamedDimension
from explorer.aot import compile as compile
from explorer.capture.call import Call as Call
from explorer.capture.explore import explore as explore
from explorer.capture.explore_all import explore_all as explore_all
from explorer.capture.open import open_hlo as open_hlo
from explorer.errors import ExplorerError as ExplorerError
from explorer.golden.record import check as check
from explorer.golden.record import record as record
from explorer.hardware.table import target as target
from explorer.hardware.table import targets as targets
from explorer.hotpath.auto import auto_compile as auto_compile
from explorer.hotpath.signals import signal as signal
from explorer.jitted import disable_compile as disable_compile
from explorer.jitted import enable_compile as enable_compile
from explorer.jitted import jit as jit
from explorer.ledger.guards import assert_no_recompiles as assert_no_recompiles
from explorer.ledger.guards import max_compiles as max_compiles
from explorer.ledger.processes import gather_ledgers as gather_ledgers
from explorer.ledger.processes import merge_ledgers as merge_ledgers
from explorer.ledger.watch import watch as watch
from explorer.measure.compare import compare as compare
from explorer.measure.largest_that_fits import largest_that_fits as largest_that_fits
from explorer.measure.memory import memory as memory
from explorer.measure.peaks import peaks as peaks
from explorer.measure.profile import merge_profiles as merge_profiles
from explorer.measure.profile import profile as profile
from explorer.measure.roofline import roofline as roofline
from explorer.measure.sweep import sweep as sweep
from explorer.measure.targets import compare_targets as compare_targets
from explorer.measure.time import time as time
from explorer.measure.what_if import what_if as what_if
from explorer.model.bookmark import Bookmark as Bookmark
from explorer.model.bookmark import Note as Note
from explorer.model.capture import Capture as Capture
from explorer.model.events.ledger import Ledger as Ledger
from explorer.model.findings import Findings as Findings
from explorer.model.golden import Golden as Golden
from explorer.model.results.hot_paths import HotPaths as HotPaths
from explorer.model.results.profile import Profile as Profile
from explorer.model.results.roofline import Peaks as Peaks
from explorer.model.results.sweep import Sweep as Sweep
from explorer.model.results.timing import Timing as Timing
from explorer.notebook import load_ipython_extension as load_ipython_extension
from explorer.notebook import unload_ipython_extension as unload_ipython_extension
from explorer.pitfalls.lint import lint as lint
from explorer.sessions.session import session as session

load = Capture.load
__all__: list[str]
__version__: str
