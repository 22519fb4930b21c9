"""PUE of cloud regions as their operators published it."""

import csv
import difflib
from functools import lru_cache
from pathlib import Path

from carbonreport.errors import BadPue
from carbonreport.model.pue import PueProfile

_TABLE = Path(__file__).resolve().parent / "data" / "cloud_regions.csv"
PROVIDERS = {"aws": "AWS", "azure": "Microsoft", "gcp": "Google"}
_SPREAD = 0.03  # of a published regional value, either way


def is_region(text: str) -> bool:
    """Whether a PUE is given as a cloud region: "aws:eu-central-1"."""
    return text.partition(":")[0].lower() in PROVIDERS and ":" in text


def pue_of_region(text: str) -> PueProfile:
    """The published PUE of a cloud region, with the spread of a yearly regional value.

    Raises:
        BadPue: No PUE of that region is known; the message names the nearest ones.
    """
    provider, _, region = text.lower().partition(":")
    regions = _regions()
    found = regions.get((provider, region))
    if found is None:
        names = [name for p, name in regions if p == provider]
        near = difflib.get_close_matches(region, names, n=3, cutoff=0.3) or names[:3]
        raise BadPue(
            f"no published PUE of {text!r}; nearest: {', '.join(f'{provider}:{name}' for name in near)}; or give --pue {provider}, a number or a range"
        )
    value, year = found
    return PueProfile(value, max(value - _SPREAD, 1.0), value + _SPREAD, "reported", f"{PROVIDERS[provider]} {year}, {region}")


@lru_cache(maxsize=1)
def _regions() -> dict[tuple[str, str], tuple[float, str]]:
    with _TABLE.open(encoding="utf-8", newline="") as file:
        return {(row["provider"], row["region"]): (float(row["pue"]), row["year"]) for row in csv.DictReader(file)}
