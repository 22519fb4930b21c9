"""People in the ledger: pseudonyms by default, made with a salt that stays apart from it."""

import hmac
import os
import secrets
import stat
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Literal

from carbonreport.errors import CarbonreportError, OutputError

People = Literal["names", "pseudonyms", "none"]
MODES: tuple[People, ...] = ("names", "pseudonyms", "none")
_SALT_BYTES = 32
_LEAST_SALT_BYTES = 16
_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"  # 32 characters that are told apart when read aloud
_LENGTH = 8


def salt_of(path: Path) -> bytes:
    """The salt of a file; made there, for its owner alone, where there is none.

    Raises:
        OutputError: It cannot be written or read.
        CarbonreportError: It is too short, or others may read it.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _make(path)
        others = stat.S_IMODE(path.stat().st_mode) & 0o077
        salt = path.read_bytes()
    except OSError as error:
        raise OutputError(
            f"cannot keep the salt of the pseudonyms in {path}: {error.strerror or error}; --salt FILE keeps it elsewhere, --people none needs none"
        ) from error
    if others and os.name == "posix":
        raise CarbonreportError(f"others may read the salt {path}, so pseudonyms are no protection; chmod 600 {path}")
    if len(salt) < _LEAST_SALT_BYTES:
        raise CarbonreportError(f"the salt {path} has {len(salt)} bytes; it needs {_LEAST_SALT_BYTES} or more that nobody can guess")
    return salt


def _make(path: Path) -> None:
    """Write a new salt whole or not at all, and never over another one: two processes end up with the same."""
    if path.exists():
        return
    beside = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    file = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        os.write(file, secrets.token_bytes(_SALT_BYTES))
        os.fsync(file)
    finally:
        os.close(file)
    try:
        os.link(beside, path)
    except FileExistsError:
        pass  # another process was faster, and its salt counts
    finally:
        beside.unlink()


def pseudonym(name: str, salt: bytes) -> str:
    """What stands for a person: the same for the same salt, and not to be read back without it."""
    digest = int.from_bytes(hmac.digest(salt, name.encode(), "sha256")[:5], "big")
    return "p-" + "".join(_ALPHABET[(digest >> (5 * i)) & 31] for i in range(_LENGTH))


def named(people: People, salt: bytes | None) -> Callable[[Iterable[str]], dict[str, str]]:
    """How people are written: a table from names to what stands for them.

    Args:
        people: names, pseudonyms, or none at all.
        salt: For pseudonyms.
    """

    def table(names: Iterable[str]) -> dict[str, str]:
        if people == "pseudonyms" and salt is None:
            raise ValueError("pseudonyms need a salt")
        return {n: "" if people == "none" or not n else n if salt is None or people == "names" else pseudonym(n, salt) for n in names}

    return table
