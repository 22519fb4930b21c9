"""Asking providers over HTTPS: the one file that imports requests.

A key travels in a header, never in an address, and never to another host: redirects there are refused, and `.netrc` is not asked.
What is raised names the host and the reason and holds neither address nor header; the library's own exceptions, which do, are dropped.
Proxies and certificates are those of the environment (HTTPS_PROXY, REQUESTS_CA_BUNDLE).
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin, urlsplit

from carbonreport import __version__
from carbonreport.errors import BadAnswer, FetchError, KeyRefused, MissingExtra, Offline, TooManyRequests
from carbonreport.request import OFFLINE_VARIABLE, Request, denied, printable, retry_after_s

if TYPE_CHECKING:
    import requests

ATTEMPTS = 4
MOST_REDIRECTS = 3
MOST_BYTES = 16 * 2**20
CONNECT_S, READ_S, LONGEST_S = 10.0, 30.0, 90.0
LONGEST_WAIT_S = 60.0  # a provider that asks for more is told to the user instead
PAUSE_S = 5.0
MOST_WORDS = 160
_PIECE = 65_536
_BUSY, _DENIED = 429, 401
_PASSING = frozenset({408, 500, 502, 503, 504})
_REDIRECTS = frozenset({301, 302, 303, 307, 308})


@dataclass(frozen=True, slots=True)
class _Failure:
    """Why an attempt failed, and how long to wait before the next one; None where another would not help. [s]"""

    error: FetchError
    wait_s: float | None = None


class Fetcher:
    """Asks with timeouts, back-off and limits: `Fetcher()(request)` is the body of the answer.

    Args:
        offline: Whether to refuse before anything is sent.
        sleep: Waits. [s]
        clock: Seconds that only rise.
        read_s: Longest silence of a provider. [s]
        longest_s: Longest time that one answer may take. [s]
        most_bytes: Largest body.
    """

    def __init__(
        self,
        *,
        offline: bool = False,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
        read_s: float = READ_S,
        longest_s: float = LONGEST_S,
        most_bytes: int = MOST_BYTES,
    ) -> None:
        self.offline = offline
        self._sleep, self._clock = sleep, clock
        self._read_s, self._longest_s, self._most_bytes = read_s, longest_s, most_bytes
        self._session: requests.Session | None = None
        self._keys_worked: set[str] = set()

    def __call__(self, request: Request) -> bytes:
        """Body of the answer.

        Raises:
            FetchError: There is none that could be used.
            MissingExtra: requests is not installed.
        """
        if self.offline:
            raise Offline(f"{request.host} was not asked: {OFFLINE_VARIABLE} or an option forbids the network; {request.way_out} instead")
        if not all(value.isascii() and value.isprintable() for _, value in request.headers):
            raise KeyRefused(f"{request.key_name or 'a key'} holds a character that no key has, such as a line break; copy it once more")
        attempt = 0
        while not isinstance(found := self._attempt(request, attempt), bytes):
            attempt += 1
            if found.wait_s is None or attempt == ATTEMPTS:
                raise found.error
            if isinstance(found.error, KeyRefused):
                self._keys_worked.discard(request.host)  # once is enough
            self._sleep(found.wait_s)
        self._keys_worked.add(request.host)
        return found

    def _attempt(self, request: Request, attempt: int) -> "bytes | _Failure":
        """One try, redirects within the host followed."""
        requests, http_error = _library()
        self._session = self._session or requests.Session()
        url, parameters = request.url, request.parameters
        until_s, usual_s = self._clock() + self._longest_s, 2.0**attempt
        try:
            for _ in range(MOST_REDIRECTS + 1):
                with self._session.get(
                    url,
                    params=parameters,
                    headers={"User-Agent": f"carbonreport/{__version__}", "Accept": "application/json", **dict(request.headers)},
                    timeout=(CONNECT_S, self._read_s),
                    allow_redirects=False,
                    stream=True,
                    auth=_as_prepared,
                ) as response:
                    if response.status_code not in _REDIRECTS:
                        return self._outcome(request, response, until_s, usual_s)
                    url, parameters = urljoin(url, response.headers.get("Location", "")), ()
                if urlsplit(url)[:2] != urlsplit(request.url)[:2]:
                    there = printable(urlsplit(url).hostname or "nowhere")
                    return _Failure(FetchError(f"{request.host} redirects to another address ({there}), which was not followed"))
            return _Failure(FetchError(f"{request.host} redirects in circles"))
        except (requests.RequestException, http_error, OSError) as error:
            kind, helps = _reason(error, self._read_s, requests)
        return _Failure(FetchError(f"{request.host} {kind}; try again later, or {request.way_out}"), usual_s if helps else None)

    def _outcome(self, request: Request, response: Any, until_s: float, usual_s: float) -> "bytes | _Failure":
        """What a status and its body mean."""
        code, host = response.status_code, request.host
        if code == 200:
            return self._body(host, response, until_s)
        asked_s = retry_after_s(response.headers.get("Retry-After"))
        wait_s = usual_s if asked_s is None else asked_s
        may_wait = wait_s <= LONGEST_WAIT_S
        if code == _BUSY:
            busy = f"{host} was asked too often (429); try again in {max(wait_s, PAUSE_S):.0f} s or more"
            return _Failure(TooManyRequests(busy), wait_s if may_wait else None)
        if code == _DENIED and host in self._keys_worked:
            text = f"{host} refused a key that had just worked (401), which it also says when asked too often; try again in some minutes"
            return _Failure(KeyRefused(text), max(wait_s, PAUSE_S) if may_wait else None)
        words = self._words(request, response, until_s)
        if code in (_DENIED, 403):
            return _Failure(KeyRefused(denied(request, code) + words))
        if code in _PASSING:
            return _Failure(FetchError(f"{host} failed ({code}){words}; try again later"), wait_s if may_wait else None)
        return _Failure(FetchError(f"{host} refused the request ({code}){words}"))

    def _body(self, host: str, response: Any, until_s: float) -> "bytes | _Failure":
        """The whole body, unless it is too large or too slow."""
        pieces, size = [], 0
        while piece := response.raw.read1(_PIECE, decode_content=True):
            size += len(piece)
            if size > self._most_bytes:
                return _Failure(BadAnswer(f"{host} sent more than {self._most_bytes} bytes, which was not read further"))
            if self._clock() > until_s:
                return _Failure(FetchError(f"{host} took longer than {self._longest_s:.0f} s to send its answer"))
            pieces.append(piece)
        return b"".join(pieces)

    def _words(self, request: Request, response: Any, until_s: float) -> str:
        """What the provider says of an error: keys out first, then cut short, in one line."""
        body = self._body(request.host, response, until_s)
        text = body.decode("utf-8", "replace") if isinstance(body, bytes) else ""
        for _, value in request.headers:
            for secret in (value, value.rpartition(" ")[2]):
                text = text.replace(secret, "…")
        text = "" if text.lstrip().startswith("<") else printable(text)[:MOST_WORDS]
        return f": {text}" if text else ""


def _library() -> tuple[Any, type[Exception]]:
    try:
        import requests
        from urllib3.exceptions import HTTPError
    except ImportError as error:
        raise MissingExtra("asking a provider of grid data", "grid") from error
    return requests, HTTPError


def _as_prepared(prepared: Any) -> Any:
    """An "authentication" that changes nothing; without one requests would look into .netrc and put that in the key's place."""
    return prepared


def _reason(error: Exception, read_s: float, requests: Any) -> tuple[str, bool]:
    """Why nothing came, without the library's words, which hold the address; and whether another try may help."""
    table: tuple[tuple[type[Exception], str, bool], ...] = (
        (requests.exceptions.SSLError, "has no certificate that this machine trusts (REQUESTS_CA_BUNDLE names others)", False),
        (requests.exceptions.ProxyError, "cannot be reached through the proxy of HTTPS_PROXY", True),
        (requests.exceptions.Timeout, f"did not answer within {read_s:g} s", True),
        (requests.exceptions.ConnectionError, "cannot be reached", True),
        (requests.exceptions.InvalidURL, "has no valid address", False),
    )
    return next(((text, helps) for kind, text, helps in table if isinstance(error, kind)), ("broke off its answer", True))
