"""The rules, by family; importing this registers them."""

from explorer.aot.padding.rules import calls as calls
from explorer.aot.padding.rules import contraction as contraction
from explorer.aot.padding.rules import elementwise as elementwise
from explorer.aot.padding.rules import indexing as indexing
from explorer.aot.padding.rules import linear_algebra as linear_algebra
from explorer.aot.padding.rules import loops as loops
from explorer.aot.padding.rules import random as random
from explorer.aot.padding.rules import reduction as reduction
from explorer.aot.padding.rules import reshape as reshape
from explorer.aot.padding.rules import shape as shape
from explorer.aot.padding.rules import sorting as sorting
from explorer.aot.padding.rules import windows as windows
