"""Phases whose energies cannot be told apart become one row of a table: their sum is known, their shares are not. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from carbonreport.control.hooks.follow import TOGETHER
from carbonreport.workflows.plan_stage import Stage


@dataclass(frozen=True, slots=True)
class Group:
    """One row of the table.

    Attributes:
        name: Its phases as they follow each other; clocks are turned at the begin of the first one.
        members: Its phases.
        positions: Where it begins in a step.
    """

    name: str
    members: tuple[str, ...]
    positions: tuple[int, ...]

    def cost(self, stage: Stage) -> tuple[float, float, float]:
        """Time, energy and its standard deviation of one time. [s, J, J]"""
        phases = [phase for phase in stage.phases if phase.name in self.members]
        times = len(self.positions)
        seconds, joules = (sum(phase.count * getattr(phase, name) for phase in phases) for name in ("seconds", "joules"))
        variance = sum((phase.count * phase.joules_sd) ** 2 for phase in phases)
        return seconds / times, joules / times, variance**0.5 / times


def groups_of(sequence: Sequence[str], stages: Sequence[Stage]) -> tuple[Group, ...]:
    """Phases of one step in groups that every stage tells apart; nothing where that leaves no phases.

    A phase that some stage tells with another is put together with it everywhere, and only where they follow each other: what runs
    between them would have their clocks.
    """
    names = tuple(dict.fromkeys(sequence))
    if not names or any({phase.name for phase in stage.phases} != set(names) for stage in stages):
        return ()
    group_of = {name: name for name in names}
    for phase in (phase for stage in stages for phase in stage.phases if phase.told_within):
        if phase.told_within not in group_of:
            return ()
        old, new = group_of[phase.name], group_of[phase.told_within]
        group_of = {name: new if group == old else group for name, group in group_of.items()}
    if len(set(group_of.values())) == 1:
        return () if len(names) > 1 else (Group(names[0], names, tuple(range(len(sequence)))),)
    found = [_group(sequence, tuple(name for name in names if group_of[name] == group)) for group in dict.fromkeys(group_of.values())]
    return tuple(group for group in found if group is not None) if None not in found else ()


def _group(sequence: Sequence[str], members: tuple[str, ...]) -> Group | None:
    """Runs of its phases, which must be alike; None where they are not."""
    if len(members) == 1:
        return Group(members[0], members, tuple(i for i, name in enumerate(sequence) if name == members[0]))
    starts = [i for i, name in enumerate(sequence) if name in members and sequence[i - 1] not in members]
    runs = [_run(sequence, start, members) for start in starts]
    if len(set(runs)) != 1:
        return None
    return Group(TOGETHER.join(dict.fromkeys(runs[0])), members, tuple(starts)) if runs[0].count(runs[0][0]) == 1 else None


def _run(sequence: Sequence[str], start: int, members: tuple[str, ...]) -> tuple[str, ...]:
    """Phases of a group from one begin on, over the end of the step where it goes on there."""
    run = []
    for i in range(len(sequence)):
        name = sequence[(start + i) % len(sequence)]
        if name not in members:
            break
        run.append(name)
    return tuple(run)
