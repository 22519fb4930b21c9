"""Whether phases come in the order that was planned for: it is looked for, followed, lost and looked for again. Pure."""

from collections import deque

_LONG_FOLLOWED = 10  # iterations; who was followed so long is believed again after one
_MOST_NEEDED = 64


class Order:
    """The order of phases of a program beside that of a plan.

    After each loss that follows soon, twice as many iterations in a row are needed before it counts again: what only looks like
    the order now and then, such as steps of several backward passes, is not followed for long.

    Args:
        sequence: Phases of one iteration; nothing where the plan does not say, and every order is right.
    """

    def __init__(self, sequence: tuple[str, ...]) -> None:
        self._sequence = sequence
        self._recent: deque[str] = deque(maxlen=len(sequence))
        self._at: int | None = None
        self._in_a_row, self._needed = 0, 1
        self.is_followed = self.was_found = not sequence
        self.lost = 0
        self.outside = 0
        self.first_other = ""

    def take(self, name: str) -> bool:
        """Take the next phase; whether it is one of an iteration that is followed."""
        if not self._sequence:
            return True
        self._recent.append(name)
        if self._at is not None and name == self._sequence[self._at]:
            self._at = (self._at + 1) % len(self._sequence)
            self._in_a_row += self._at == 0
        else:
            self._look(name)
        self.is_followed = self._at is not None and self._in_a_row >= self._needed
        self.was_found |= self.is_followed
        self.outside += not self.is_followed
        return self.is_followed

    def lose(self) -> None:
        """What came was not all of it: look again."""
        if self.is_followed and self._sequence:
            self.lost += 1
            self._needed = 1 if self._in_a_row >= _LONG_FOLLOWED else min(2 * self._needed, _MOST_NEEDED)
            self.is_followed = False
        self._at, self._in_a_row = None, 0

    def _look(self, name: str) -> None:
        if self._at is not None:
            self.lose()
        self._say_first(name)
        if tuple(self._recent) == self._sequence:
            self._at, self._in_a_row = 0, 1

    def _say_first(self, name: str) -> None:
        at = len(self._recent) - 1
        if not self.was_found and not self.first_other and name != self._sequence[at]:
            self.first_other = f"phase {at + 1} of the first iteration is {name}, planned was {self._sequence[at]}"
