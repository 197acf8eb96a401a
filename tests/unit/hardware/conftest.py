"""The compilers of other hardware are 340 MB: where they aren't installed, what needs them is skipped, and CI fails."""

import os
import sys

import pytest

from explorer.hardware.installed import is_available


def require(platform: str) -> None:
    if is_available(platform):
        return
    reason = f"needs the compiler: python -m explorer targets install {platform}"
    # `make compilers` installs those of the pinned JAX, which Python 3.11 has.
    if os.environ.get("EXPLORER_CI") == "1" and sys.version_info < (3, 12):
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def cuda() -> str:
    require("cuda")
    return "h100"


@pytest.fixture(scope="session")
def tpu() -> str:
    require("tpu")
    return "v5e"
