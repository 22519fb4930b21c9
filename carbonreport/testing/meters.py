"""A meter whose power the test says."""

from collections.abc import Callable, Mapping

from carbonreport.measure.clock import RunClock
from carbonreport.measure.meter import Poll, Reading
from carbonreport.model.run import Device, DeviceKind


class FakeMeter:
    """One device with a known power over time, read exactly.

    Args:
        watts: Power, constant or as a function of the offset. [W]
        device: Id of the device.
        kind: Kind of the device.
        step_s: Resolution of the readings. [s]
        fail_at_s: Offset from which on every poll raises, or None.
    """

    def __init__(
        self,
        watts: float | Callable[[float], float],
        *,
        device: str = "GPU-fake",
        kind: DeviceKind = "gpu",
        step_s: float = 0.02,
        fail_at_s: float | None = None,
    ) -> None:
        self.device = Device(device, f"Fake {device}", kind, "counter", 0.99, 1.08, "a fake meter", edge_joules=1.0)
        self.period_s: float | None = None
        self._watts, self._step_s, self._fail_at_s = watts, step_s, fail_at_s
        self._offset_s = self.joules = 0.0
        self._clock: RunClock | None = None
        self.is_closed = False

    def environment(self) -> Mapping[str, str]:
        return {}

    def open(self, clock: RunClock) -> tuple[Device, ...]:
        self._clock = clock
        return (self.device,)

    def poll(self, *, is_last: bool) -> Poll:
        assert self._clock is not None
        now_s = self._clock.offset_s()
        if self._fail_at_s is not None and now_s >= self._fail_at_s:
            raise RuntimeError("the fake meter was told to fail")
        readings = [] if self._offset_s else [Reading(self.device.id, 0.0, 0.0)]
        while self._offset_s < now_s:
            step_s = min(self._step_s, now_s - self._offset_s)
            self.joules += step_s * (self._watts(self._offset_s) if callable(self._watts) else self._watts)
            self._offset_s = min(self._offset_s + step_s, now_s)
            readings.append(Reading(self.device.id, self._offset_s, self.joules))
        return Poll(tuple(readings))

    def close(self) -> None:
        self.is_closed = True
