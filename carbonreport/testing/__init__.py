"""Fakes for tests, the package's own and its users': clocks that move when told, drivers and meters without hardware, ready-made records."""

from carbonreport.testing.clock import FakeClock
from carbonreport.testing.gpu import VirtualGpu, virtual_trace
from carbonreport.testing.meters import FakeMeter
from carbonreport.testing.nvml import LowPass
from carbonreport.testing.records import make_record

__all__ = ["FakeClock", "FakeMeter", "LowPass", "VirtualGpu", "make_record", "virtual_trace"]
