"""The ways of setting, tried in turn: NVML, then `sudo -n nvidia-smi`. The first that is allowed is kept."""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence

from carbonreport import nvml
from carbonreport.control.controller import BoardState, ControlDenied, Controller
from carbonreport.control.controllers import nvml as by_nvml
from carbonreport.control.controllers import smi as by_smi
from carbonreport.model.knobs import Knobs

SMI_VARIABLE = "CARBONREPORT_NVIDIA_SMI"


class FirstAllowed:
    """Sets by the first way that this user may use.

    Args:
        ways: Controllers, best first; the first one reads.
    """

    def __init__(self, ways: Sequence[Controller]) -> None:
        self._ways = list(ways)

    def read(self, device: str) -> BoardState:
        """See Controller."""
        return self._ways[0].read(device)

    def set(self, device: str, knobs: Knobs) -> None:
        """See Controller. Refused by all, the error says what each said and what would help."""
        self._try(lambda way: way.set(device, knobs))

    def restore(self, device: str, before_watts: float | None, knobs: Knobs) -> None:
        """See Controller."""
        self._try(lambda way: way.restore(device, before_watts, knobs))

    def _try(self, turn: Callable[[Controller], None]) -> None:
        denied: list[str] = []
        for way in self._ways:
            try:
                turn(way)
            except ControlDenied as error:
                denied.append(str(error))
            else:
                return
        raise ControlDenied("; ".join(denied))


@contextlib.contextmanager
def opened(environ: Mapping[str, str]) -> Iterator[Controller]:
    """A controller of this machine's NVIDIA boards.

    Raises:
        MeterError: There is no driver, or no binding.
    """
    binding = nvml.binding()
    nvml.start(binding)
    try:
        reader = by_nvml.create(binding)
        yield FirstAllowed([reader, by_smi.create(reader, environ.get(SMI_VARIABLE, "nvidia-smi"))])
    finally:
        nvml.stop(binding)
