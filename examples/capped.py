"""Train under a power cap where it is allowed, and read what became of it: python capped.py [FOLDER]."""

import sys

from carbonreport import trace


def train(steps: int) -> float:
    loss = 1.0
    for step in range(steps):
        loss *= 0.999 + 1e-9 * sum(i * i for i in range(20_000)) % 1e-6
        if step % 100 == 0:
            print(f"step {step}: loss {loss:.3f}")
    return loss


# The cap is set before the first step and taken back when the block ends, however it ends. Where it is refused (no GPU, no
# right, outside the board's range) the run goes on without it and the record says so; without cap_is_optional it raises instead.
with trace(
    "capped training", out=sys.argv[1] if len(sys.argv) > 1 else "runs", zone="DE", power_cap_watts=300, cap_is_optional=True
) as run:
    train(300)

record = run.record
for held in record.knobs:
    print(
        f"{held.device}: {held.requested.in_words()}, {held.before_watts:g} W before; kept to the end: {held.is_held}, at work: {held.has_bitten}"
    )
for note in record.notes:
    if note.slug.startswith(("cap-", "knobs-")):
        print(f"{note.slug}: {note.text}")
