"""A growing energy counter as cumulative energy of a run: differenced, restarts added, nonsense put aside."""

from collections.abc import Sequence

from carbonreport.importers.curves import Curve, Read, Reading, in_order, thinned, usual_step

# A difference beyond what the board may draw in that time, with this slack for late readings, is no energy.
SLACK = 1.2


def curve_of_counter(readings: Sequence[Reading], limit_watts: float) -> Read:
    """Energy of a growing counter, differenced: a restart adds what it shows after, a bad value is put aside, a leap too large is no energy.

    Args:
        readings: In the file's order. [J]
        limit_watts: What the device may draw. [W]
    """
    ordered, why, twins, rejected = in_order(readings)
    if why:
        return Read(None, rejected, why)
    if len(ordered) < 2:
        return Read(None, rejected, "a counter that was read once says what it has counted since its start, not what a run used")
    times, joules, gaps, resets = [ordered[0][1]], [0.0], [], 0
    last_s, last = ordered[0][1:]
    for i, (line, at_s, value) in enumerate(ordered[1:], start=1):
        bound = limit_watts * (at_s - last_s) * SLACK
        step = value - last
        after = ordered[i + 1] if i + 1 < len(ordered) else None
        goes_on = after is not None and 0 <= after[2] - last <= limit_watts * (after[1] - last_s) * SLACK
        if 0 <= step <= bound:
            added = step
        elif goes_on:
            rejected.append((line, f"counter at {value:g} J is out of line with the readings before and after it"))
            continue
        elif step < 0 and value <= bound:
            added, resets = value, resets + 1
        elif step < 0:
            rejected.append(
                (
                    line,
                    f"counter fell from {last:g} to {value:g} J, which is no restart: {value:g} J in {at_s - last_s:g} s is more than the device may draw",
                )
            )
            added = 0.0
            gaps.append((last_s, at_s))
        else:
            rejected.append((line, f"counter rose by {step:g} J in {at_s - last_s:g} s, more than {limit_watts:g} W allow"))
            added = 0.0
            gaps.append((last_s, at_s))
        times.append(at_s)
        joules.append(joules[-1] + added)
        last_s, last = at_s, value
    if len(times) < 2:
        return Read(None, rejected, "no two readings of the counter agree with each other")
    return Read(Curve(*thinned(times, joules), tuple(gaps), usual_step(times), resets, twins), rejected)
