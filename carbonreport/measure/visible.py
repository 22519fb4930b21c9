"""Which boards CUDA_VISIBLE_DEVICES leaves to the program, as CUDA reads it. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

NO_MIG: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Board:
    """One NVIDIA board.

    Attributes:
        index: Its number in PCI order, as NVML counts.
        uuid: "GPU-…".
        name: Model.
        pci_bus_id: Where it is plugged in.
    """

    index: int
    uuid: str
    name: str
    pci_bus_id: str


def visible(boards: Sequence[Board], cuda_visible_devices: str | None, mig_parents: Mapping[str, str] = NO_MIG) -> tuple[Board, ...]:
    """The boards that CUDA shows, each once: a MIG instance counts as its board.

    CUDA stops at the first entry that names no device, so "0,-1,2" is board 0 alone
    (CUDA C++ Programming Guide, environment variables).

    Args:
        boards: All boards in PCI order.
        cuda_visible_devices: The variable's value; None where it is not set.
        mig_parents: UUID of the board of each MIG instance, by the instance's own UUID ("MIG-…").
    """
    if cuda_visible_devices is None:
        return tuple(boards)
    found: list[Board] = []
    for entry in cuda_visible_devices.split(","):
        board = _named(entry.strip(), boards, mig_parents)
        if board is None:
            break
        if board not in found:
            found.append(board)
    return tuple(found)


def order_doubt(boards: Sequence[Board], cuda_visible_devices: str | None, *, order_is_pci: bool) -> str | None:
    """Why indices may mean other boards than those taken, or None where they cannot.

    CUDA counts the fastest board first unless CUDA_DEVICE_ORDER is PCI_BUS_ID, and only CUDA knows which it takes for the fastest.
    """
    models = sorted({board.name for board in boards})
    if order_is_pci or len(models) < 2 or not _has_index(cuda_visible_devices):
        return None
    return (
        f"CUDA_VISIBLE_DEVICES={cuda_visible_devices} was counted in PCI order, but CUDA counts the fastest first and the models differ "
        f"({', '.join(models)}); CUDA_DEVICE_ORDER=PCI_BUS_ID or UUIDs make it certain"
    )


def _has_index(cuda_visible_devices: str | None) -> bool:
    return any(_is_index(entry.strip()) for entry in (cuda_visible_devices or "").split(","))


def _is_index(entry: str) -> bool:
    return entry.isascii() and entry.isdigit()


def _named(entry: str, boards: Sequence[Board], mig_parents: Mapping[str, str]) -> Board | None:
    if _is_index(entry):
        return next((board for board in boards if board.index == int(entry)), None)
    if entry.upper().startswith("MIG-GPU-"):  # MIG-GPU-<uuid>/<GPU instance>/<compute instance>, drivers before 470
        return _only([board for board in boards if board.uuid.upper() == entry[len("MIG-") :].split("/")[0].upper()])
    if entry.upper().startswith("MIG-"):
        parents = {parent for mig, parent in mig_parents.items() if mig.upper().startswith(entry.upper())}
        return _only([board for board in boards if board.uuid in parents])
    if entry.upper().startswith("GPU-"):
        return _only([board for board in boards if board.uuid.upper().startswith(entry.upper())])
    return None


def _only(candidates: list[Board]) -> Board | None:
    return candidates[0] if len(candidates) == 1 else None
