"""Where rows of the lab's ledger go, and how people are written there."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from zoneinfo import ZoneInfo

from carbonreport.audit.people import People, named, salt_of
from carbonreport.errors import CarbonreportError
from carbonreport.importers.wishes import zone_named

_SALT_SUFFIX = ".salt"


@dataclass(frozen=True, slots=True)
class Keeping:
    """Where rows go, and how people are written there.

    Attributes:
        url: Folder or URL of the ledger.
        people: names, pseudonyms or none.
        salt: File of the salt; beside a local ledger where nobody says.
        time_zone: Of local times in files, or None.
        project: Whom runs without a project are charged to.
    """

    url: str
    people: People = "pseudonyms"
    salt: Path | None = None
    time_zone: str | None = None
    project: str = ""

    def names(self) -> Callable[[Iterable[str]], dict[str, str]]:
        """How people are written.

        Raises:
            CarbonreportError: Pseudonyms of a ledger behind a URL, whose salt nobody named.
        """
        return named(self.people, salt_of(self.salt_file()) if self.people == "pseudonyms" else None)

    def salt_file(self) -> Path:
        """Where the salt lies.

        Raises:
            CarbonreportError: The ledger is behind a URL, and nobody named a file.
        """
        if self.salt is not None:
            return self.salt
        if "://" in self.url:
            raise CarbonreportError(
                f"pseudonyms in {self.url} need a salt that stays with you: --salt FILE (made there if it is new), or --people none"
            )
        path = Path(self.url).resolve()
        if not path.name:
            raise CarbonreportError(f"a ledger needs a folder of its own; {self.url} is the root of all files")
        return path.with_name(path.name + _SALT_SUFFIX)

    @property
    def zone(self) -> ZoneInfo | None:
        """Zone of local times."""
        return zone_named(self.time_zone) if self.time_zone else None
