"""What a plan belongs to: the order of the kernels it was made for. Pure."""

import hashlib
from collections.abc import Iterable


def sequence_hash(names: Iterable[str]) -> str:
    """Hash of the names of all invocations in launch order: another model, another batch or another library is another one."""
    digest = hashlib.sha256()
    for name in names:
        digest.update(name.encode())
        digest.update(b"\0")
    return digest.hexdigest()
