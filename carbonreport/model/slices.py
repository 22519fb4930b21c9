"""Slices of boards (MIG), told by their names, and what part of a board's compute each is."""

import re

# As nvidia-smi and Slurm name them: "1g.10gb", "1c.3g.20gb" for a part of a slice.
_PROFILE = re.compile(r"(?<![0-9])(?:([0-9])c\.)?([0-9])g\.([0-9]+)gb", re.IGNORECASE)
_WITH = re.compile(r"(?<=gb)\+(?:me|gfx)(?:\.all)?(?![a-z0-9])", re.IGNORECASE)  # a slice with its media engines or graphics: no other one
# Slices of compute a board has (NVIDIA MIG User Guide, "Supported MIG Profiles" and "Supported GPUs"): seven, but for these.
_OTHER_BOARDS = {"a30": 4, "6000": 4, "5000": 2, "4500": 2}  # RTX PRO 6000, 5000, 4500
_FOUR = {(1, 6), (2, 12), (4, 24), (4, 96)}  # slices and GB that only boards of four have: A30, RTX PRO 6000
_UNCLEAR = {(1, 16), (1, 24), (1, 36), (2, 32), (2, 48), (2, 72)}  # that boards of two, four or seven have; the board's name must tell
_SEVEN_BOARDS = ("a100", "a800", "h100", "h800", "gh200", "h20", "h200", "b200", "gb200", "b300", "gb300")


def is_slice(name: str) -> bool:
    """Whether a type of GPU is a slice of a board, such as a100_1g.5gb."""
    return _PROFILE.search(name) is not None


def board_share(name: str) -> float | None:
    """The part of a board's compute that a type of GPU is: 1 for a board, 1/7 for a100_1g.5gb; None where its profile does not tell.

    Args:
        name: A type, or several that one job had, joined by "+": they tell where they are alike.
    """
    shares = {_share(one) for one in _WITH.sub("", name).split("+")}
    return shares.pop() if len(shares) == 1 else None


def _share(name: str) -> float | None:
    found = _PROFILE.search(name)
    if found is None:
        return 1.0
    compute, slices, gigabytes = (int(text) if text else None for text in found.groups())
    words = set(re.split(r"[^a-z0-9]+", name[: found.start()].casefold()))
    whole = next((count for board, count in _OTHER_BOARDS.items() if any(word.endswith(board) for word in words)), None)
    if whole is None and not any(word.startswith(_SEVEN_BOARDS) for word in words):
        whole = 4 if (slices, gigabytes) in _FOUR else 0 if (slices, gigabytes) in _UNCLEAR else None
    whole = 7 if whole is None else whole
    part = compute if compute is not None else slices
    return part / whole if part and slices and part <= slices <= whole else None
