"""Turns knobs through NVML itself, which asks for root or CAP_SYS_ADMIN."""

import contextlib
from collections.abc import Callable
from typing import Any

from carbonreport.control.controller import BoardState, ControlDenied, ControlError, Controller, ControlRefused
from carbonreport.model.knobs import Knobs

# nvml.h, API 13: ids of fields; own constants because older bindings lack the names.
FIELD_ENFORCED_LIMIT = 190
FIELD_REQUESTED_LIMIT = 192
FIELD_CAPPED_NS = 74
_SCOPE_GPU = 0
_UNSIGNED_LONG_LONG = 3
MILLIWATTS_PER_WATT = 1000


def create(nvml: Any) -> Controller:
    """The controller over a started module `pynvml`."""
    return NvmlController(nvml)


class NvmlController:
    """Old setters in milliwatts, whose return codes the binding checks; its `_v2` setter throws them away.

    Args:
        nvml: The module `pynvml`, started, or what behaves like it.
    """

    def __init__(self, nvml: Any) -> None:
        self._nvml = nvml

    def read(self, device: str) -> BoardState:
        """See Controller."""
        handle = self._handle(device)
        label = f"GPU {self._told(self._nvml.nvmlDeviceGetIndex, handle)} ({_text(self._told(self._nvml.nvmlDeviceGetName, handle))})"
        limit = self._told(self._nvml.nvmlDeviceGetPowerManagementLimit, handle)
        if limit is None:
            limit = self._field(handle, FIELD_REQUESTED_LIMIT)
        enforced = self._field(handle, FIELD_ENFORCED_LIMIT)
        if enforced is None:
            enforced = self._told(self._nvml.nvmlDeviceGetEnforcedPowerLimit, handle)
        least, most = self._told(self._nvml.nvmlDeviceGetPowerManagementLimitConstraints, handle) or (None, None)
        mem_clocks = tuple(self._told(self._nvml.nvmlDeviceGetSupportedMemoryClocks, handle) or ())
        sm_clocks = tuple(self._told(self._nvml.nvmlDeviceGetSupportedGraphicsClocks, handle, mem_clocks[0]) or ()) if mem_clocks else ()
        mig = self._told(self._nvml.nvmlDeviceGetMigMode, handle)
        return BoardState(
            uuid=device,
            label=label,
            limit_watts=_watts(limit),
            enforced_watts=_watts(enforced),
            default_watts=_watts(self._told(self._nvml.nvmlDeviceGetPowerManagementDefaultLimit, handle)),
            least_watts=_watts(least),
            most_watts=_watts(most),
            capped_ns=self._field(handle, FIELD_CAPPED_NS),
            has_mig=bool(mig and mig[0]),
            sm_clocks_mhz=sm_clocks,
            mem_clocks_mhz=mem_clocks,
        )

    def set(self, device: str, knobs: Knobs) -> None:
        """See Controller."""
        handle = self._handle(device)
        if knobs.sm_clock_mhz is not None:  # a ceiling, not a pin: an idle board may still clock down
            lowest = min(
                self._nvml.nvmlDeviceGetSupportedGraphicsClocks(handle, max(self._nvml.nvmlDeviceGetSupportedMemoryClocks(handle)))
            )
            self._turn(device, "core clock", self._nvml.nvmlDeviceSetGpuLockedClocks, handle, lowest, knobs.sm_clock_mhz)
        if knobs.mem_clock_mhz is not None:
            lowest = min(self._nvml.nvmlDeviceGetSupportedMemoryClocks(handle))
            self._turn(device, "memory clock", self._nvml.nvmlDeviceSetMemoryLockedClocks, handle, lowest, knobs.mem_clock_mhz)
        if knobs.power_cap_watts is not None:
            self._limit(device, handle, knobs.power_cap_watts)

    def restore(self, device: str, before_watts: float | None, knobs: Knobs) -> None:
        """See Controller. Clocks first, then the limit; each is tried whichever fails."""
        handle = self._handle(device)
        with contextlib.ExitStack() as rest:  # callbacks run from the last to the first
            if knobs.power_cap_watts is not None and before_watts is not None:
                rest.callback(self._limit, device, handle, before_watts)
            if knobs.mem_clock_mhz is not None:
                rest.callback(self._turn, device, "memory clock", self._nvml.nvmlDeviceResetMemoryLockedClocks, handle)
            if knobs.sm_clock_mhz is not None:
                rest.callback(self._turn, device, "core clock", self._nvml.nvmlDeviceResetGpuLockedClocks, handle)

    def _limit(self, device: str, handle: Any, watts: float) -> None:
        self._turn(device, "power limit", self._nvml.nvmlDeviceSetPowerManagementLimit, handle, round(watts * MILLIWATTS_PER_WATT))

    def _turn(self, device: str, what: str, setter: Callable[..., None], handle: Any, *values: int) -> None:
        try:
            setter(handle, *values)
        except self._nvml.NVMLError_NoPermission as error:
            raise ControlDenied(f"this user may not set the {what} of {device}") from error
        except (self._nvml.NVMLError_NotSupported, self._nvml.NVMLError_FunctionNotFound) as error:
            raise ControlRefused(f"{device} has no {what} that can be set here ({error})") from error
        except self._nvml.NVMLError_InvalidArgument as error:
            raise ControlRefused(f"{device} does not take {' to '.join(map(str, values))} as its {what} ({error})") from error
        except self._nvml.NVMLError as error:
            raise ControlError(f"the {what} of {device} could not be set: {error}") from error

    def _handle(self, device: str) -> Any:
        try:
            return self._nvml.nvmlDeviceGetHandleByUUID(device)
        except self._nvml.NVMLError as error:
            raise ControlError(f"{device} does not answer: {error}") from error

    def _told(self, getter: Callable[..., Any], handle: Any, *more: Any) -> Any:
        """The board's answer, or None where it has none; a board that is lost raises."""
        nvml = self._nvml
        try:
            return getter(handle, *more)
        except (nvml.NVMLError_GpuIsLost, nvml.NVMLError_Uninitialized, nvml.NVMLError_ResetRequired) as error:
            raise ControlError(f"a board does not answer any more: {error}") from error
        except nvml.NVMLError:
            return None

    def _field(self, handle: Any, field: int) -> int | None:
        values = self._told(self._nvml.nvmlDeviceGetFieldValues, handle, [(field, _SCOPE_GPU)])
        if not values or values[0].nvmlReturn != 0:
            return None
        held = values[0].value
        return int(held.ullVal if values[0].valueType == _UNSIGNED_LONG_LONG else held.uiVal)


def _watts(milliwatts: int | None) -> float | None:
    return None if milliwatts is None else milliwatts / MILLIWATTS_PER_WATT


def _text(value: str | bytes | None) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
