"""Ratios as changes in per cent, written the same way in tables and in sentences."""


def change(ratio: float, decimals: int = 1, unit: str = " %") -> str:
    """0.863 as −13.7 %, with a minus sign and none before a zero."""
    percent = round(100 * (ratio - 1), decimals) + 0.0
    return f"{percent:+.{decimals}f}{unit}".replace("-", "−")


def change_with_ends(value: float, low: float, high: float, decimals: int = 1) -> str:
    """−13.7 % [−14.1, −13.2]."""
    return f"{change(value, decimals)} [{change(low, decimals, '')}, {change(high, decimals, '')}]"
