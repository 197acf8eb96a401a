"""Views of measurements: timings, profiles, rooflines, sweeps."""
