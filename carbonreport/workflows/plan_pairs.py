"""Pairs of clocks as people write them, and which of a board's are worth measuring. Pure."""

from collections.abc import Callable, Iterable, Sequence

from carbonreport.control.controller import BoardState
from carbonreport.model.knobs import Knobs
from carbonreport.plan.table import UNLOCKED, ClockPair, PlanError

EVERY = 4  # every so many core clocks of the menu in the first round
_LEAST_SHARE = 0.35  # of the top core clock; below it only waiting gets longer on every board that was published

Turn = Callable[[ClockPair], None]  # asks for clocks


def pair_of(text: str) -> ClockPair:
    """`1410`, `1410:2201`, `auto:2201` or `auto`.

    Raises:
        PlanError: It is no pair of clocks.
    """
    sm, _, mem = text.strip().partition(":")
    try:
        return ClockPair(_mhz(sm), _mhz(mem or "auto"))
    except ValueError as error:
        raise PlanError(f"{text!r} is no pair of clocks: write SM:MEMORY in MHz, such as 1410:2201, 1410 or auto:2201") from error


def pairs_of(text: str) -> tuple[ClockPair, ...]:
    """Several of them, separated by commas; each once.

    Raises:
        PlanError: One is no pair of clocks, or there is none.
    """
    pairs = tuple(dict.fromkeys(pair_of(part) for part in text.split(",") if part.strip()))
    if not pairs:
        raise PlanError(f"{text!r} names no clocks; write SM:MEMORY in MHz, such as 1410:2201,1410,auto:2201")
    return pairs


def written(pair: ClockPair) -> str:
    """A pair as `pair_of` reads it."""
    sm, mem = ("auto" if mhz is None else str(mhz) for mhz in (pair.sm_mhz, pair.mem_mhz))
    return f"{sm}:{mem}"


def _mhz(text: str) -> int | None:
    return None if text.strip().lower() in ("auto", "unlocked") else int(text.strip().lower().removesuffix("mhz"))


def knobs_of(pair: ClockPair) -> Knobs:
    """What asks for a pair."""
    return Knobs(sm_clock_mhz=pair.sm_mhz, mem_clock_mhz=pair.mem_mhz)


def envelope(pairs: Iterable[ClockPair]) -> Knobs:
    """Knobs that hold every clock which one of the pairs locks, each at its highest: what the journal must know before any is set."""
    held = list(pairs)
    sm = [pair.sm_mhz for pair in held if pair.sm_mhz is not None]
    mem = [pair.mem_mhz for pair in held if pair.mem_mhz is not None]
    return Knobs(sm_clock_mhz=max(sm, default=None), mem_clock_mhz=max(mem, default=None))


def coarse_grid(state: BoardState, every: int = EVERY) -> tuple[ClockPair, ...]:
    """Every so many core clocks, the unlocked cores among them, under each memory clock; never UNLOCKED itself, which is always measured.

    The highest memory clock is what a board takes by itself, so that it needs no lock.
    """
    cores: list[int | None] = [None, *_worthwhile(state)[::every]]
    memories: list[int | None] = [None, *state.mem_clocks_mhz[1:]]
    return tuple(pair for mem in memories for sm in cores if (pair := ClockPair(sm, mem)) != UNLOCKED)


def finer(best: Iterable[ClockPair], measured: Iterable[ClockPair], state: BoardState, every: int = EVERY) -> tuple[ClockPair, ...]:
    """Pairs of the menu between the best ones and their measured neighbours, halfway first, that were not measured."""
    known = set(measured)
    menu = _worthwhile(state)
    found: list[ClockPair] = []
    for pair in best:
        if pair.sm_mhz not in menu:
            continue
        at = menu.index(pair.sm_mhz)
        for step in dict.fromkeys((every // 2, every // 4)):
            if step:
                found += [ClockPair(menu[i], pair.mem_mhz) for i in (at - step, at + step) if 0 <= i < len(menu)]
    return tuple(pair for pair in dict.fromkeys(found) if pair not in known)


def _worthwhile(state: BoardState) -> Sequence[int]:
    """Core clocks below the top one, highest first."""
    menu = state.sm_clocks_mhz
    return [mhz for mhz in menu[1:] if mhz >= _LEAST_SHARE * menu[0]]
