"""What boards and nodes can draw: above it, a number is no power, or in another unit."""

from carbonreport.boards import find_board

# No board of the vendors' data sheets is rated above 1400 W (GB300); one that is not in the table may draw as much.
MOST_BOARD_WATTS = 1400.0
# A node of a job draws at least what an idle host draws, and at most what 16 boards and their host draw.
LEAST_NODE_WATTS, MOST_NODE_WATTS = 50.0, 15_000.0


def limit_of(board: str) -> float:
    """What a board of that name may draw: its rating, else that of the largest. [W]"""
    rated = find_board(board).rated_watts if board else None
    return rated if rated is not None else MOST_BOARD_WATTS
