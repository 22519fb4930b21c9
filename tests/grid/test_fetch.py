"""Asking a server that misbehaves in every known way, on localhost."""

import logging
import socket
import subprocess
import sys
import threading
import time
import traceback
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Request as Asked
from werkzeug import Response

from carbonreport.errors import BadAnswer, CarbonreportError, FetchError, KeyRefused, Offline, TooManyRequests
from carbonreport.fetch import ATTEMPTS, Fetcher
from carbonreport.request import Request, is_offline

SECRET = "s3cret-t0ken"


class Waits:
    """A sleep that only remembers."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)


@pytest.fixture
def waits() -> Waits:
    return Waits()


def keyed(server: HTTPServer, path: str = "/data") -> Request:
    return Request(server.url_for(path), (("zone", "DE"),), (("auth-token", SECRET),), "SOME_KEY")


def answering(server: HTTPServer, *answers: Response | tuple[int, dict[str, str]], path: str = "/data") -> None:
    for answer in answers:
        response = answer if isinstance(answer, Response) else Response("", answer[0], answer[1])
        server.expect_ordered_request(path).respond_with_response(response)


def test_an_answer_comes_with_the_key_in_a_header_and_the_zone_in_the_query(httpserver, waits):
    httpserver.expect_request("/data", query_string="zone=DE", headers={"auth-token": SECRET}).respond_with_data(b"[1]")
    assert Fetcher(sleep=waits)(keyed(httpserver)) == b"[1]"
    assert waits.seconds == []


@pytest.mark.parametrize("code", [500, 502, 503, 504])
def test_a_passing_failure_is_tried_again_after_longer_and_longer_waits(httpserver, waits, code):
    answering(httpserver, (code, {}), (code, {}), Response(b"[1]"))
    assert Fetcher(sleep=waits)(keyed(httpserver)) == b"[1]"
    assert waits.seconds == [1.0, 2.0]


def test_a_lasting_failure_is_given_up(httpserver, waits):
    httpserver.expect_request("/data").respond_with_data("", 500)
    with pytest.raises(FetchError, match=r"localhost failed \(500\)"):
        Fetcher(sleep=waits)(keyed(httpserver))
    assert len(httpserver.log) == ATTEMPTS


def test_retry_after_is_obeyed_as_seconds_and_as_a_date(httpserver, waits):
    at = format_datetime(datetime.now(UTC) + timedelta(seconds=20), usegmt=True)
    answering(httpserver, (429, {"Retry-After": "7"}), (429, {"Retry-After": at}), Response(b"[1]"))
    assert Fetcher(sleep=waits)(keyed(httpserver)) == b"[1]"
    assert waits.seconds[0] == 7
    assert 17 < waits.seconds[1] <= 20


def test_who_must_wait_too_long_is_told_so(httpserver, waits):
    httpserver.expect_request("/data").respond_with_data("", 429, {"Retry-After": "3600"})
    with pytest.raises(TooManyRequests, match="try again in 3600 s"):
        Fetcher(sleep=waits)(keyed(httpserver))
    assert len(httpserver.log) == 1
    assert waits.seconds == []


def test_a_401_after_the_key_had_worked_is_tried_once_more(httpserver, waits):
    answering(httpserver, Response(b"[1]"), (401, {}), Response(b"[2]"))
    fetch = Fetcher(sleep=waits)
    assert [fetch(keyed(httpserver)), fetch(keyed(httpserver))] == [b"[1]", b"[2]"]
    assert waits.seconds == [5.0]


def test_a_401_that_stays_says_both_reasons(httpserver, waits):
    answering(httpserver, Response(b"[1]"), (401, {}), (401, {}))
    fetch = Fetcher(sleep=waits)
    fetch(keyed(httpserver))
    with pytest.raises(KeyRefused, match="too many requests can be answered the same way"):
        fetch(keyed(httpserver))
    assert len(httpserver.log) == 3


def test_a_key_that_never_worked_is_refused_at_once(httpserver, waits):
    httpserver.expect_request("/data").respond_with_json({"error": "Invalid auth-token"}, 401)
    with pytest.raises(KeyRefused, match=r"SOME_KEY \(401\).*Invalid auth-token"):
        Fetcher(sleep=waits)(keyed(httpserver))
    assert len(httpserver.log) == 1


def test_a_redirect_within_the_host_is_followed_and_one_elsewhere_is_not(httpserver, waits):
    answering(httpserver, (302, {"Location": "/data?zone=DE&again=1"}), Response(b"[1]"))
    assert Fetcher(sleep=waits)(keyed(httpserver)) == b"[1]"
    with HTTPServer(port=0) as other:
        other.expect_request("/data").respond_with_data(b"[2]")
        answering(httpserver, (302, {"Location": other.url_for("/data")}))
        with pytest.raises(FetchError, match="redirects to another address"):
            Fetcher(sleep=waits)(keyed(httpserver))
        assert other.log == []  # the key did not travel


def test_a_redirect_in_circles_ends(httpserver, waits):
    httpserver.expect_request("/data").respond_with_data("", 302, {"Location": "/data"})
    with pytest.raises(FetchError, match="circles"):
        Fetcher(sleep=waits)(keyed(httpserver))


def test_netrc_does_not_take_the_place_of_the_key(httpserver, waits, tmp_path, monkeypatch):
    (tmp_path / "netrc").write_text("machine localhost login someone password else\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    httpserver.expect_request("/data", headers={"Authorization": f"Bearer {SECRET}"}).respond_with_data(b"[1]")
    request = Request(httpserver.url_for("/data"), (), (("Authorization", f"Bearer {SECRET}"),))
    assert Fetcher(sleep=waits)(request) == b"[1]"


def test_a_body_that_is_too_large_is_not_read_further(httpserver, waits):
    httpserver.expect_request("/data").respond_with_data(b"x" * 5000)
    with pytest.raises(BadAnswer, match="more than 4000 bytes"):
        Fetcher(sleep=waits, most_bytes=4000)(keyed(httpserver))


def test_a_packed_body_is_unpacked_and_its_size_counts_unpacked(httpserver, waits):
    import gzip

    httpserver.expect_request("/data").respond_with_data(gzip.compress(b"0" * 100_000), headers={"Content-Encoding": "gzip"})
    assert len(Fetcher(sleep=waits)(keyed(httpserver))) == 100_000
    with pytest.raises(BadAnswer, match="more than 50000 bytes"):
        Fetcher(sleep=waits, most_bytes=50_000)(keyed(httpserver))


def test_a_silent_server_is_given_up(httpserver, waits):
    def slow(_: Asked) -> Response:
        time.sleep(0.4)
        return Response(b"[1]")

    httpserver.expect_request("/data").respond_with_handler(slow)
    with pytest.raises(FetchError, match="did not answer within 0.1 s"):
        Fetcher(sleep=waits, read_s=0.1)(keyed(httpserver))


class Raw:
    """A server that speaks plain bytes, for what no proper server would send."""

    def __init__(self, *pieces: bytes, pause_s: float = 0.0) -> None:
        self._pieces, self._pause_s = pieces, pause_s
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}/data"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            with connection:
                connection.recv(65536)
                try:
                    for piece in self._pieces:
                        connection.sendall(piece)
                        time.sleep(self._pause_s)
                except OSError:
                    pass

    def close(self) -> None:
        self._socket.close()


def test_a_body_that_was_cut_off_is_no_answer(waits):
    server = Raw(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n[1, 2")
    with pytest.raises(FetchError, match="broke off its answer"):
        Fetcher(sleep=waits)(Request(server.url))
    server.close()
    assert len(waits.seconds) == ATTEMPTS - 1


def test_a_body_that_drips_is_given_up_in_time(waits):
    server = Raw(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n", *[b" "] * 100, pause_s=0.02)
    begin = time.perf_counter()
    with pytest.raises(FetchError, match="took longer than 0 s"):
        Fetcher(sleep=waits, longest_s=0.1)(Request(server.url))
    server.close()
    assert time.perf_counter() - begin < 2


def test_nobody_at_the_address_is_an_error_of_one_line(waits):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(FetchError, match=r"127.0.0.1 cannot be reached; try again later, or give --grid FILE.csv"):
        Fetcher(sleep=waits)(Request(f"http://127.0.0.1:{port}/"))


def test_a_proxy_of_the_environment_is_asked(httpserver, waits, monkeypatch):
    httpserver.expect_request("/data").respond_with_data(b"[1]")
    monkeypatch.setenv("HTTP_PROXY", httpserver.url_for(""))
    monkeypatch.setenv("NO_PROXY", "")
    assert Fetcher(sleep=waits)(Request("http://provider.invalid/data")) == b"[1]"


def test_offline_nothing_is_sent(httpserver, waits):
    with pytest.raises(Offline, match="CARBONREPORT_OFFLINE"):
        Fetcher(offline=True, sleep=waits)(keyed(httpserver))
    assert httpserver.log == []


@pytest.mark.parametrize(("text", "expected"), [("1", True), ("true", True), ("0", False), ("no", False), ("", False)])
def test_the_environment_says_whether_the_network_may_be_used(text, expected):
    assert is_offline({"CARBONREPORT_OFFLINE": text}) is expected
    assert is_offline({}) is False


def test_a_provider_cannot_forge_a_line_of_a_log(httpserver, waits):
    httpserver.expect_request("/data").respond_with_data("bad\r\nWARNING all keys lost\x1b[31m" + "x" * 1000, 400)
    with pytest.raises(FetchError) as caught:
        Fetcher(sleep=waits)(keyed(httpserver))
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("code", [400, 401, 403, 429, 500])
def test_a_key_is_in_no_log_and_no_exception_even_where_the_provider_repeats_it(httpserver, waits, caplog, code):
    caplog.set_level(logging.DEBUG)
    httpserver.expect_request("/data").respond_with_data(f"{'x' * 155} your key {SECRET} is bad", code)
    request = Request(httpserver.url_for("/data"), (), (("Authorization", f"Bearer {SECRET}"),), "SOME_KEY")
    with pytest.raises(CarbonreportError) as caught:
        Fetcher(sleep=waits)(request)
    error: BaseException | None = caught.value
    while error is not None:  # nothing of the library is chained
        assert SECRET not in f"{error!r} {error.__dict__}"
        error = error.__context__ or error.__cause__
    assert SECRET not in "".join(traceback.format_exception(caught.value))
    assert SECRET not in caplog.text + repr(request)


@pytest.mark.parametrize("key", ["s3cret\n", "s3cret\r\nHost: elsewhere", "s3crét"])
def test_a_key_that_cannot_be_a_header_is_refused_without_showing_it(httpserver, waits, key):
    with pytest.raises(KeyRefused, match="SOME_KEY holds a character") as caught:
        Fetcher(sleep=waits)(Request(httpserver.url_for("/data"), (), (("auth-token", key),), "SOME_KEY"))
    assert "s3cr" not in str(caught.value) and httpserver.log == []


def test_without_requests_the_extra_is_named():
    code = (
        "import sys; sys.modules['requests'] = None\n"
        "from carbonreport.errors import MissingExtra\n"
        "from carbonreport.fetch import Fetcher, Request\n"
        "try: Fetcher()(Request('http://localhost/'))\n"
        "except MissingExtra as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install 'carbonreport[grid]'" in done.stdout


def test_requests_is_imported_in_one_file_and_only_when_something_is_asked():
    package = Path(__file__).parents[2] / "carbonreport"
    users = [path.name for path in package.rglob("*.py") if "import requests" in path.read_text()]
    assert users == ["fetch.py"]
