"""One thing that doctor looked at."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at.

    Attributes:
        subject: GPUs, processors, memory, power caps, place, …
        state: "measured", "estimated", "missing", "known" or "unknown".
        text: What was found, and why it is so.
        remedy: The exact command, line or option that would improve it, or "".
    """

    subject: str
    state: str
    text: str
    remedy: str = ""
