"""Slices of boards (MIG), told by their names."""

import re

_PROFILE = re.compile(r"(?<![0-9])[0-9]g\.[0-9]+gb", re.IGNORECASE)  # as nvidia-smi and Slurm name them


def is_slice(name: str) -> bool:
    """Whether a type of GPU is a slice of a board, such as a100_1g.5gb."""
    return _PROFILE.search(name) is not None
