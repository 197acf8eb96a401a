"""Who counts calls leaves no trace in them."""

import json
import sys
import time
import weakref

import pytest

from explorer.hotpath.counting import MonitoredCalls, SampledCalls


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


@pytest.mark.skipif(sys.version_info < (3, 12), reason="Python 3.11 has no sys.monitoring")
def test_library_functions_are_nobodys_hot_functions_though_another_tool_restarts_all_events():
    nominated = []

    def mine():
        return json.dumps([1])

    counter = MonitoredCalls(3, nominated.append)
    counter.start()
    for _ in range(12):
        mine()
        sys.monitoring.restart_events()
    counter.stop()
    assert {function.__name__ for function in nominated} == {"mine"}
