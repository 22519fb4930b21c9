"""What is known of this machine without asking a driver. No user name, no host name leaves this file."""

import hashlib
import os
import sys
from collections.abc import Mapping
from pathlib import Path

_MACHINE_ID_FILES = ("/etc/machine-id", "/var/lib/dbus/machine-id")
_SALT = b"carbonreport host"


def host_id(files: tuple[str, ...] = _MACHINE_ID_FILES) -> str:
    """A salted id: equal for two runs of one host, and nobody can read the host back from it."""
    for name in files:
        path = Path(name)
        if path.is_file():
            secret = path.read_bytes().strip()
            if secret:
                return hashlib.blake2b(secret, key=_SALT, digest_size=8).hexdigest()
    return hashlib.blake2b(_uname()[1].encode(), key=_SALT, digest_size=8).hexdigest()


def host_time_zone(environ: Mapping[str, str], localtime: Path = Path("/etc/localtime")) -> str | None:
    """IANA name of the machine's time zone, or None where it does not say."""
    named = environ.get("TZ", "").lstrip(":")
    if named and "/" in named and not named.startswith("/"):
        return named
    if named:
        return named if named == "UTC" else None
    if not localtime.is_symlink():
        return None
    target = os.path.realpath(localtime)
    name = target.partition("zoneinfo/")[2]
    return name or None


def environment(version: str) -> dict[str, str]:
    """Versions and hardware for the record: what a reader needs to judge the numbers, and no more."""
    system, _, machine = _uname()
    return {
        "carbonreport": version,
        "python": sys.version.partition(" ")[0],
        "system": f"{system} {machine}",
        "logical_cpus": str(os.cpu_count() or "unknown"),
        "implementation": sys.implementation.name,
    }


def _uname() -> tuple[str, str, str]:
    """System, node and machine; `platform` would say the same and takes longer to import than the rest of the start."""
    if not hasattr(os, "uname"):
        return sys.platform, os.environ.get("COMPUTERNAME", ""), os.environ.get("PROCESSOR_ARCHITECTURE", "")
    uname = os.uname()
    return uname.sysname, uname.nodename, uname.machine
