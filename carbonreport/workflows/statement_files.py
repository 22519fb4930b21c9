"""Files of a statement: told by their suffix, never written over what carbonreport did not write, all of them or none."""

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from carbonreport.errors import OutputError
from carbonreport.plugins import names
from carbonreport.render.engine import style_folder, writes

MARK = "written by carbonreport"
_HEAD = 400  # bytes of a line that are looked at
_JSON_MARK = '"written_by": "carbonreport'
_PDF_MARK = b"<xmp:CreatorTool>carbonreport "


def format_of(path: Path, style: str) -> str:
    """The format that a file's suffix names. Raises OutputError where it names none, with the suffixes that the style has."""
    name = path.suffix.removeprefix(".").lower()
    if name not in names("format"):
        raise OutputError(
            f"cannot tell the format of {path}: in style {style!r} its suffix must be one of {', '.join(writes(style_folder(style)))}"
        )
    return name


def refuse_foreign(path: Path, force: bool) -> None:
    """Raise OutputError where a file must not be written."""
    if path.is_dir():
        raise OutputError(f"{path} is a folder; give a file name such as {path / 'energy.tex'}")
    if path.exists() and not path.is_file():
        raise OutputError(f"{path} is not a regular file; give a file name such as energy.tex")
    if not force and path.is_file() and not _is_ours(path):
        raise OutputError(f"{path} was not written by carbonreport; choose another name, or --force to replace it")


def _is_ours(path: Path) -> bool:
    """Whether a file is empty or says in its first two lines, a PDF in its metadata, that carbonreport wrote it."""
    try:
        if path.suffix.lower() == ".pdf":
            content = path.read_bytes()
            return not content.strip() or (content.startswith(b"%PDF-") and _PDF_MARK in content)
        with path.open(encoding="utf-8", errors="replace") as file:
            head = file.readline(_HEAD) + file.readline(_HEAD)
    except OSError as error:
        raise OutputError(f"cannot read {path}: {error.strerror or error}") from error
    return not head.strip() or any(line.lstrip("% #<!-").startswith((MARK, _JSON_MARK)) for line in head.splitlines())


def write_all(texts: Mapping[Path, str | bytes]) -> None:
    """Write every file beside its target, and move them into place when all of them are there. Raises OutputError."""
    beside = {path: path.resolve().with_name(f".{path.name}.{os.getpid()}") for path in texts}
    path = next(iter(texts), Path())
    try:
        for path, text in texts.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            beside[path].write_bytes(text if isinstance(text, bytes) else text.encode("utf-8"))
        for path in texts:
            beside[path].replace(path.resolve())
    except OSError as error:
        for left in beside.values():
            with suppress(OSError):
                left.unlink(missing_ok=True)
        raise OutputError(f"cannot write {path}: {error.strerror or error}") from error
