"""What is asked of a provider, and what its refusals mean. Nothing here talks; `fetch.py` does."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from urllib.parse import urlsplit

OFFLINE_VARIABLE = "CARBONREPORT_OFFLINE"


@dataclass(frozen=True, slots=True)
class Request:
    """What to ask.

    Attributes:
        url: Address without a query.
        parameters: Query.
        headers: May hold a key, so they are never shown.
        key_name: Environment variable of the key, for messages; "" without one.
        way_out: What to do instead, for messages.
    """

    url: str
    parameters: tuple[tuple[str, str], ...] = ()
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    key_name: str = ""
    way_out: str = "give --grid FILE.csv"

    @property
    def host(self) -> str:
        """Host that is asked."""
        return urlsplit(self.url).hostname or "nobody"


Fetch = Callable[[Request], bytes]


def is_offline(environ: Mapping[str, str]) -> bool:
    """Whether the environment forbids the network."""
    return environ.get(OFFLINE_VARIABLE, "").strip().lower() not in ("", "0", "false", "no")


def printable(text: str) -> str:
    """A provider's text in one line without control characters, which could forge a line of a log."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def denied(request: Request, code: int) -> str:
    """Why a provider refused a key, or the lack of one."""
    if not request.key_name:
        return f"{request.host} wants a key ({code})"
    return (
        f"{request.host} refused the key of {request.key_name} ({code}): it may be wrong, not active yet, or not for this zone or signal; "
        "too many requests can be answered the same way"
    )


def retry_after_s(text: str | None) -> float | None:
    """Seconds that a provider asks to wait: a number, or a date."""
    if not text:
        return None
    if text.strip().isdigit():
        return float(text)
    try:
        at = parsedate_to_datetime(text)
    except ValueError:
        return None
    return max((at.astimezone(UTC) - datetime.now(UTC)).total_seconds(), 0.0)
