"""Put back what dead runs left set, of this user or, as root, of another one whose files are believed only as far as they can be."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager

from carbonreport.control.controller import Controller
from carbonreport.control.giveback import GivenBack, Rule, give_back
from carbonreport.control.leases import Leases, boot_id, control_folder
from carbonreport.control.means import opened
from carbonreport.errors import CarbonreportError

EPILOG_TURN_S = 5.0  # a user who holds the lock for ever must not stop the epilog


def restore(
    uid: int,
    *,
    own_uid: int,
    environ: Mapping[str, str],
    is_dry: bool = False,
    longest_turn_s: float = EPILOG_TURN_S,
    open_controller: Callable[[Mapping[str, str]], AbstractContextManager[Controller]] = opened,
) -> list[GivenBack]:
    """What became of every board in a user's journal; empty where nothing is left.

    Raises:
        CarbonreportError: Another user's journal without being root, a journal that cannot be believed, or no driver.
    """
    if uid != own_uid and own_uid != 0:
        raise CarbonreportError(f"only root may put back what user {uid} left; your own: carbonreport restore")
    leases = Leases(control_folder(uid, environ), uid, is_made=False)
    if not leases.exists():
        return []
    with leases.turn(longest_turn_s) as turn:
        if not turn.devices():
            return []
        with open_controller(environ) as controller:
            return give_back(turn, controller, Rule(boot_id(), is_dry=is_dry))
