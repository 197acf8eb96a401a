"""What was measured: timings, profiles, rooflines, memory, sweeps."""
