"""Padding rules by family; importing this package registers them."""

from explorer.padding.rules import elementwise as elementwise
from explorer.padding.rules import indexing as indexing
from explorer.padding.rules import loops as loops
from explorer.padding.rules import products as products
from explorer.padding.rules import reduction as reduction
from explorer.padding.rules import shape as shape
