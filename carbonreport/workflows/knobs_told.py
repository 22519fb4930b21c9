"""What a run is told of its knobs at the end: whether they held, what they did, and whether every board is back."""

from collections.abc import Sequence

from carbonreport.control.controller import BoardState, ControlError, Controller, is_same_limit
from carbonreport.control.giveback import IS_DONE, GivenBack
from carbonreport.model.knobs import Knobs, KnobsHeld
from carbonreport.model.notes import Note

NANOSECONDS_PER_SECOND = 1e9


def read_at_end(controller: Controller, device: str) -> BoardState | None:
    """A board's state; None where it does not answer."""
    try:
        return controller.read(device)
    except ControlError:
        return None


def held_to_the_end(device: str, knobs: Knobs, before: BoardState, after: BoardState, now: BoardState | None, seconds: float) -> KnobsHeld:
    """What became of one board's knobs.

    Args:
        device: Its UUID.
        knobs: What was asked for.
        before: Its state before they were set.
        after: Once they were set.
        now: At the end; None where it does not answer.
        seconds: How long they were held. [s]
    """
    capped = None if now is None or now.capped_ns is None or after.capped_ns is None else now.capped_ns - after.capped_ns
    return KnobsHeld(
        device=device,
        requested=knobs,
        before_watts=before.limit_watts,
        enforced_watts=after.enforced_watts,
        is_held=_is_held(knobs, now),
        capped_seconds=None if capped is None or capped < 0 else capped / NANOSECONDS_PER_SECOND,
        seconds=seconds,
    )


def _is_held(knobs: Knobs, now: BoardState | None) -> bool | None:
    if now is None or now.limit_watts is None or knobs.power_cap_watts is None:
        return None
    return is_same_limit(now.limit_watts, knobs.power_cap_watts)


def notes_of_board(held: KnobsHeld, label: str, now: BoardState | None) -> list[Note]:
    """What the reader must know of one board."""
    if now is None or (held.is_held is None and held.requested.power_cap_watts is not None):
        return [Note("cap-unproven", f"{label} did not answer at the end: whether it kept {held.requested.in_words()} is not known")]
    notes = []
    if held.is_held is False:
        notes.append(
            Note("cap-not-held", f"{label} did not keep {held.requested.in_words()}: at the end its limit was {now.limit_watts:g} W")
        )
    if held.is_capped_elsewhere:
        notes.append(
            Note(
                "cap-lower-elsewhere", f"{label} was held at {held.enforced_watts:g} W by another owner, below {held.requested.in_words()}"
            )
        )
    if held.has_bitten is False and held.requested.power_cap_watts is not None:
        notes.append(Note("cap-without-effect", f"{label} hardly ever reached {held.requested.in_words()}"))
    return notes


def notes_of_giving_back(given_back: Sequence[GivenBack]) -> list[Note]:
    """Boards that are not back, that others have changed since, and whose journal was lost."""
    return [
        *(
            Note("knobs-not-restored", f"{done.text}; `carbonreport restore` tries again")
            for done in given_back
            if done.outcome not in IS_DONE and done.outcome != "still-held"
        ),
        *(Note("knobs-changed-by-others", done.text) for done in given_back if done.outcome == "changed-by-others"),
        *(Note("knobs-journal-lost", done.text) for done in given_back if done.is_from_memory and done.outcome in IS_DONE),
    ]
