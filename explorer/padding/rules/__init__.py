"""The rules, by family; importing this registers them."""

from explorer.padding.rules import calls as calls
from explorer.padding.rules import contraction as contraction
from explorer.padding.rules import elementwise as elementwise
from explorer.padding.rules import indexing as indexing
from explorer.padding.rules import linear_algebra as linear_algebra
from explorer.padding.rules import loops as loops
from explorer.padding.rules import random as random
from explorer.padding.rules import reduction as reduction
from explorer.padding.rules import reshape as reshape
from explorer.padding.rules import shape as shape
from explorer.padding.rules import sorting as sorting
from explorer.padding.rules import windows as windows
