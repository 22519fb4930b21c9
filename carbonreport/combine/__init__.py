"""ARITHMETIC, pure: what a run's energy becomes. No file, clock, network or GPU."""
