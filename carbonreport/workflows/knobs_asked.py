"""What is asked of which boards: caps as they are written, boards by number or UUID."""

from collections.abc import Mapping
from dataclasses import replace

from carbonreport.control.controller import ControlError
from carbonreport.errors import CarbonreportError
from carbonreport.model.knobs import Knobs


def wanted(asked: Knobs | Mapping[str, Knobs], boards: list[tuple[int, str]]) -> dict[str, Knobs]:
    """Knobs by UUID.

    Raises:
        ControlError: The run has no board, or not that one.
    """
    if not boards:
        raise ControlError("no NVIDIA GPU is visible to the run: there is nothing to set")
    if isinstance(asked, Knobs):
        return {uuid: asked for _, uuid in boards}
    found: dict[str, Knobs] = {}
    for name, knobs in asked.items():
        of_name = [uuid for number, uuid in boards if name == str(number) or (name and uuid.startswith(name))]
        if len(of_name) != 1:
            known = ", ".join(f"{number} ({uuid})" for number, uuid in boards)
            raise ControlError(f"GPU {name!r} is not one board of the run, which has {known}")
        if of_name[0] in found:
            raise ControlError(f"GPU {name!r} is {of_name[0]}, which was named before: each board takes one setting")
        found[of_name[0]] = knobs
    return found


def boards_here(environ: Mapping[str, str]) -> list[tuple[int, str]]:
    """Number and UUID of the boards that the environment shows."""
    from carbonreport import nvml
    from carbonreport.measure.meters.nvml import boards_of_run

    return [(board.index, board.uuid) for board in boards_of_run(nvml.binding(), environ)]


def parse_cap(text: str) -> Knobs | dict[str, Knobs]:
    """`300`, or by board: `0=300,GPU-1234=250`. [W]

    Raises:
        CarbonreportError: Not watts.
    """
    if "=" not in text:
        return Knobs(power_cap_watts=_cap_watts(text))
    found: dict[str, Knobs] = {}
    for name, _, watts in (part.partition("=") for part in text.split(",")):
        if name.strip() in found:
            raise CarbonreportError(f"GPU {name.strip()!r} is named twice in {text!r}: each board takes one cap")
        found[name.strip()] = Knobs(power_cap_watts=_cap_watts(watts))
    return found


def asked_caps(caps: "float | str | Mapping[str | int, float]") -> Knobs | dict[str, Knobs]:
    """Knobs of caps as the caller gave them: one number for all boards, a mapping by board, or the command line's text. [W]

    Raises:
        CarbonreportError: Not watts.
    """
    if isinstance(caps, str):
        return parse_cap(caps)
    if isinstance(caps, Mapping):
        if not caps:
            raise CarbonreportError("power_cap_watts names no board: give watts, or {0: 300}")
        return {str(name): Knobs(power_cap_watts=_cap_watts(watts)) for name, watts in caps.items()}
    return Knobs(power_cap_watts=_cap_watts(caps))


def _cap_watts(value: object) -> float:
    text = str(value).strip().removesuffix("W").strip()
    try:
        watts = float(text)
        return replace(Knobs(), power_cap_watts=watts).power_cap_watts or watts
    except ValueError as error:
        raise CarbonreportError(f"{value!r} is no power cap: give watts, such as 300, or by board 0=300,1=250") from error
