"""What is known of boards from their names alone: the power they typically draw, and what their making cost."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from carbonreport.audit.engine import NOBODY
from carbonreport.audit.groups import NO_GPU
from carbonreport.boards import find_board
from carbonreport.combine.embodied import SERVER, embodied_emissions
from carbonreport.model.audit import RatedPower, Year
from carbonreport.model.embodied import EmbodiedSource
from carbonreport.model.footprint import Embodied
from carbonreport.model.run import Device, RunRecord
from carbonreport.model.slices import is_slice
from carbonreport.units import US_PER_S
from carbonreport.workflows.estimate import TYPICAL_SHARE

_BOARDS_APART = 10_000  # embodied emissions count devices and seconds; so many devices keep the seconds short


@dataclass(frozen=True, slots=True)
class Made:
    """Manufacture of a year's boards.

    Attributes:
        embodied: Emissions, or None where the site file names none of the boards.
        boards: GPU time that they are for, by board. [µs]
        missing: GPU time of boards that the site file does not name, by board. [µs]
        unused: Devices of the site file that no job had.
    """

    embodied: Embodied | None
    boards: tuple[tuple[str, int], ...]
    missing: tuple[tuple[str, int], ...]
    unused: tuple[str, ...]


def made_of(year: Year, sources: Sequence[EmbodiedSource]) -> Made:
    """Manufacture of the boards for the GPU time that jobs held."""
    runs: list[RunRecord] = []
    boards: list[tuple[str, int]] = []
    missing: list[tuple[str, int]] = []
    used: set[str] = set()
    has_server = any(source.device.casefold() == SERVER for source in sources)
    for group in year.groups["gpu_model"]:
        if group.gpu_us <= 0 or group.name == NO_GPU:
            continue
        is_board = group.name != NOBODY and not is_slice(group.name)
        device_name = next((source.device for source in sources if _is_same(source.device, group.name)), None) if is_board else None
        (boards if device_name is not None or (is_board and has_server) else missing).append((group.name, group.gpu_us))
        if is_board:
            name = device_name or group.name
            used.add(name)
            device = Device(name, name, "gpu", "model", 1.0, 1.0, "GPU time of jobs", origin="estimated", count=_BOARDS_APART)
            runs.append(RunRecord(name, name, "other", "", 0.0, group.gpu_us / US_PER_S / _BOARDS_APART, (device,), ()))
    unused = tuple(source.device for source in sources if source.device not in used and not (source.device.casefold() == SERVER and boards))
    return Made(embodied_emissions(runs, sources)[0], tuple(boards), tuple(missing), unused)


def typical_watts(board: str) -> float | None:
    """Typical power of a board, None where nobody knows it. [W]"""
    power = rated_power(board)
    return None if power is None else power.watts


def rated_power(board: str) -> RatedPower | None:
    """The power that is taken for a board; of a type as Slurm has it ("h200") the mean of the boards of that name, H200 SXM and H200 NVL."""
    found = find_board(board)
    near = [find_board(name) for name in found.nearest if _words(board) <= _words(name)]
    rated = tuple((b.name, b.rated_watts) for b in (found, *near) if b.rated_watts is not None)
    return RatedPower(board, rated, TYPICAL_SHARE, TYPICAL_SHARE * sum(watts for _, watts in rated) / len(rated)) if rated else None


def rated_powers(energy_mj: Mapping[str, int]) -> tuple[RatedPower, ...]:
    """The rated powers that energy rests on, those with the most first.

    Args:
        energy_mj: Energy estimated at rated power, by board. [mJ]
    """
    found = [replace(power, energy_mj=mj) for board, mj in energy_mj.items() if (power := rated_power(board)) is not None]
    return tuple(sorted(found, key=lambda power: (-power.energy_mj, power.gpu_model)))


def _is_same(one: str, other: str) -> bool:
    first, second = _words(one), _words(other)
    return bool(first) and bool(second) and (first <= second or second <= first)


def _words(name: str) -> frozenset[str]:
    return frozenset("".join(c if c.isalnum() else " " for c in name.casefold()).split()) - {"nvidia"}
