"""One program for a whole range of sizes: arrays padded to a bucket's size, with the proof that it is exact."""

from explorer.padding.program import Proof as Proof
from explorer.padding.program import padded as padded
from explorer.padding.program import prove as prove
