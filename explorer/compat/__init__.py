"""Names of other libraries' APIs, for code that is ported from them."""

from explorer.compat import tripy as tripy
