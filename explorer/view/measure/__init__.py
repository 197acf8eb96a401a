"""Views of what was measured: timings, profiles, rooflines, sweeps."""
