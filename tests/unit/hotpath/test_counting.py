"""Who counts calls leaves no trace in them."""

import time
import weakref

from explorer.hotpath.counting import SampledCalls


class Held:
    """What lies in a call's frame."""


def test_what_lies_in_a_calls_frame_ends_with_the_call_though_stacks_are_looked_at():
    held = []

    def call():
        own = Held()
        held.append(weakref.ref(own))
        time.sleep(0.012)  # it is looked at twice

    counter = SampledCalls(10**9, lambda function: None)
    counter.start()
    alive = 0
    for _ in range(12):
        call()
        alive += held[-1]() is not None
    counter.stop()
    assert alive == 0
