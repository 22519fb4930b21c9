"""Asking Slurm here for its jobs."""

import os
import subprocess
import tempfile
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from carbonreport.audit.sacct import Taken
from carbonreport.errors import CarbonreportError
from carbonreport.workflows.ledger import keep_sacct
from carbonreport.workflows.ledger_keeping import Keeping

LIVE = "live"
_WANTED = [
    "JobIDRaw",
    "JobID",
    "Cluster",
    "Partition",
    "Account",
    "User",
    "Submit",
    "Start",
    "End",
    "ElapsedRaw",
    "State",
    "NNodes",
    "NodeList",
    "AllocTRES",
    "ConsumedEnergyRaw",
    "Suspended",
    "Restarts",
    "Exclusive",
    "JobName",
]
_SACCT_S = 1800.0
_STAMP = "%s"  # POSIX seconds: anything longer than a local stamp is cut by sacct (22.05), an offset too


def pulled(from_s: float, until_s: float, keeping: Keeping, *, con: Any = None, environ: Mapping[str, str] = os.environ) -> Taken:
    """Keep what Slurm here knows of a period.

    Raises:
        CarbonreportError: As `pull_sacct` and `keep_sacct` do.
    """
    with tempfile.TemporaryDirectory(prefix="carbonreport-sacct-") as folder:
        path = Path(folder) / "sacct.txt"
        pull_sacct(path, from_s, until_s, environ)
        return keep_sacct(path, keeping, con=con)


def pull_sacct(path: Path, from_s: float, until_s: float, environ: Mapping[str, str] = os.environ) -> None:
    """Ask Slurm for all jobs that touch a period, in UTC and said so, each run of a requeued job by itself.

    Raises:
        CarbonreportError: There is no sacct, or it refuses.
    """
    env = {**environ, "TZ": "UTC", "SLURM_TIME_FORMAT": _STAMP}
    try:
        known = (
            subprocess.run(["sacct", "--helpformat"], env=env, capture_output=True, text=True, timeout=60, check=True)
            .stdout.casefold()
            .split()
        )
        asked = ",".join(name for name in _WANTED if name.casefold() in known)
        period = ["-S", _moment(from_s), "-E", _moment(until_s)]
        with path.open("wb") as file:
            subprocess.run(
                ["sacct", "--allusers", "--allclusters", "-X", "-D", "--parsable2", "--noconvert", *period, f"--format={asked}"],
                env=env, stdout=file, stderr=subprocess.PIPE, timeout=_SACCT_S, check=True,
            )  # fmt: skip
    except FileNotFoundError as error:
        raise CarbonreportError("there is no sacct here; run it on a login node and give --sacct FILE") from error
    except (subprocess.SubprocessError, OSError) as error:
        said = getattr(error, "stderr", b"") or b""
        words = said.decode(errors="replace") if isinstance(said, bytes) else str(said)
        raise CarbonreportError(f"sacct did not answer: {words.strip() or error}") from error


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
