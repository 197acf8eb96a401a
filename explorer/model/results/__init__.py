"""Results of measurements: timings, profiles, rooflines, memory, sweeps."""
