"""Identities."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from . import _tacit


@dataclass(frozen=True)
class Key:
    """An identity in a file, of which only the fingerprint goes into studies."""

    path: Path
    """The file with the private key, readable by its owner alone."""
    fingerprint: str
    """What a study names: ``tacit1:`` and 32 hex digits."""

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Key:
        """The identity in a file. Raises InputError where there is none."""
        return Key(Path(path), _tacit.key_of(path))

    def __str__(self) -> str:
        return self.fingerprint


def keygen(path: str | os.PathLike[str], *, succeeds: str | os.PathLike[str] | None = None) -> Key:
    """Makes an identity in a new file; a file that is there is never overwritten.

    ``succeeds`` names the file of the identity whose place it takes. Raises InputError or FileError.
    """
    return Key(Path(path), _tacit.keygen(path, succeeds))
