"""One program for a whole range of sizes: arrays padded to a bucket's size, with the proof that it is exact."""

from explorer.aot.padding.program import padded as padded
from explorer.aot.padding.program import prove as prove
from explorer.aot.padding.proof import Proof as Proof
from explorer.aot.padding.proof import Refusal as Refusal
