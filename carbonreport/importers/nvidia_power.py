"""What NVIDIA's power readings are: averages over a second on most boards since Ampere, instants before it and on GA100."""

import re

from carbonreport.model.run import Method

# nvidia-smi -h query-gpu: power.draw is "the last measured power draw", on Ampere and later except GA100 the average over one second.
_INSTANT_BOARDS = re.compile(
    r"A100|A30\b|V100|P100|P40|P4\b|T4\b|K80|K40|M40|TITAN|GTX|RTX 20\d\d|Quadro (?!RTX A)|QUADRO|GeForce 9|PG199|Xavier|TU10\d",
    re.IGNORECASE,
)

AVERAGED = "nvidia-smi power.draw, the mean of a second on this board"
INSTANT = "nvidia-smi power.draw, instantaneous on this board"


def power_method(board: str, column: str = "power.draw") -> Method:
    """How a board's power reading is made; a board of an unknown name counts as averaged.

    Args:
        board: Its name.
        column: The reading: "power.draw", "power.draw.average", "power.draw.instant".
    """
    if "instant" in column:
        return "instant"
    if "average" in column:
        return "averaged"
    return "instant" if _INSTANT_BOARDS.search(board) else "averaged"
