"""What things are: frozen data, no file, clock, network or GPU. `run.py` is stdlib only."""
