"""What the figures were measured on, without saying whose machine it is."""

import os
import platform
import shutil
import subprocess
from datetime import UTC, datetime
from pathlib import Path

__all__ = ["compiler", "cores", "described"]


def cores() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def compiler() -> str | None:
    """The C++ compiler that torch.compile and mlx.compile need on a CPU, with its version; None if there is none."""
    command = os.environ.get("CXX") or shutil.which("g++") or shutil.which("clang++")
    if not command:
        return None
    told = subprocess.run([command, "--version"], capture_output=True, text=True, check=False).stdout
    return told.partition("\n")[0] or None


def described() -> dict[str, str | int]:
    """Processor, cores, memory, system, Python and compiler; and today's date."""
    return {
        "processor": _processor(),
        "cores": cores(),
        "memory": _memory(),
        "system": f"{platform.system()} {platform.release().partition('-')[0]}, {platform.machine()}",
        "python": platform.python_version(),
        "compiler": compiler() or "none",
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
    }


def _processor() -> str:
    """Its name; where a virtual machine hides it, with family and model, which tell the generation."""
    known = Path("/proc/cpuinfo")
    if not known.exists():
        return platform.processor() or platform.machine()
    lines = (line.partition(":") for line in known.read_text().partition("\n\n")[0].splitlines())
    found = {key.strip(): value.strip() for key, _, value in lines}
    if "model name" not in found:
        return platform.machine()
    return f"{found['model name']} (family {found.get('cpu family', '?')}, model {found.get('model', '?')})"


def _memory() -> str:
    if not hasattr(os, "sysconf") or "SC_PHYS_PAGES" not in os.sysconf_names:
        return "unknown"
    return f"{os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE') / 2**30:.0f} GiB"
