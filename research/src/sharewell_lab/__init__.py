"""Studies: simulated analysts, seeded noise, the paper's experiments. Not for real data."""
