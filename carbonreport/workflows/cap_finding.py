"""Who may set power caps here, found without setting anything."""

import os
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager

from carbonreport.control.controller import BoardState, ControlError, Controller
from carbonreport.control.means import opened
from carbonreport.control.rights import Rights, rights
from carbonreport.errors import MeterError
from carbonreport.workflows.finding import Finding
from carbonreport.workflows.knobs_asked import boards_here

SUBJECT = "power caps"


def cap_finding(
    environ: Mapping[str, str],
    *,
    open_controller: Callable[[Mapping[str, str]], AbstractContextManager[Controller]] = opened,
    find_boards: Callable[[Mapping[str, str]], list[tuple[int, str]]] = boards_here,
    allowed: Callable[[int, Mapping[str, str]], Rights] = rights,
) -> Finding | None:
    """What caps the boards take, whether this user may set them, and the exact line that would allow it; None where there is no NVIDIA board."""
    try:
        with open_controller(environ) as controller:
            states = [controller.read(uuid) for _, uuid in find_boards(environ)]
    except MeterError:
        return None
    except ControlError as error:
        return Finding(SUBJECT, "unknown", str(error))
    if not states:
        return None
    ranges = ", ".join(_range(state) for state in states)
    if any(state.has_mig for state in states):
        return Finding(SUBJECT, "missing", f"{ranges}; a board that is cut into MIG instances takes none, for it would slow every instance")
    if all(state.limit_watts is None for state in states):
        return Finding(SUBJECT, "missing", f"{ranges}: the driver has no setter for them, as on many laptops")
    found = allowed(os.getuid(), environ)
    if found.way:
        return Finding(SUBJECT, "known", f"{ranges}; may be set {found.way}")
    return Finding(
        SUBJECT, "missing", f"{ranges}; the driver asks for root or CAP_SYS_ADMIN, and nothing else frees power limits", found.remedy
    )


def _range(state: BoardState) -> str:
    if state.limit_watts is None:
        return f"{state.label}: no limit can be set"
    within = "" if state.least_watts is None or state.most_watts is None else f"{state.least_watts:g} to {state.most_watts:g} W, "
    return f"{state.label}: {within}now {state.limit_watts:g} W"
