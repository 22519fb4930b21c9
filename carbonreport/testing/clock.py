"""A clock that moves when told."""

NANOSECONDS_PER_SECOND = 1_000_000_000


class FakeClock:
    """Implements `carbonreport.measure.clock.Clock`.

    Args:
        unix_s: Wall-clock time at the start, POSIX seconds.
    """

    def __init__(self, unix_s: float = 1_767_225_600.0) -> None:
        self._boot_ns = self._awake_ns = 1000 * NANOSECONDS_PER_SECOND
        self._wall_less_boot_ns = [(0, _nanoseconds(unix_s) - self._boot_ns)]

    def boot_ns(self) -> int:
        """See Clock."""
        return self._boot_ns

    def awake_ns(self) -> int:
        """See Clock."""
        return self._awake_ns

    def wall_ns(self) -> int:
        """See Clock."""
        return self._boot_ns + self._wall_less_boot_ns[-1][1]

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self._boot_ns += _nanoseconds(seconds)
        self._awake_ns += _nanoseconds(seconds)

    def sleep(self, seconds: float) -> None:
        """Let time pass while the machine is suspended."""
        self._boot_ns += _nanoseconds(seconds)

    def step_wall(self, seconds: float) -> None:
        """Set the wall clock forward, or back."""
        self._wall_less_boot_ns.append((self._boot_ns, self._wall_less_boot_ns[-1][1] + _nanoseconds(seconds)))

    def wall_ns_at(self, boot_ns: int) -> int:
        """What the wall clock showed at an earlier reading of `boot_ns`. [ns]"""
        before = [shift_ns for since_ns, shift_ns in self._wall_less_boot_ns if since_ns <= boot_ns]
        return boot_ns + before[-1]


def _nanoseconds(seconds: float) -> int:
    return round(seconds * NANOSECONDS_PER_SECOND)
