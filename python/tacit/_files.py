"""Small files of this machine, whose errors are those of the package."""

from __future__ import annotations

import os
from pathlib import Path

from ._errors import FileError, InputError


def read_text(path: str | os.PathLike[str]) -> str:
    """A file in UTF-8. Raises InputError where there is none, or it is no text."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{os.fspath(path)} cannot be read: {_why(error)}", kind="input", code=2) from error


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Writes a file. Raises FileError where that does not go."""
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        message = f"{os.fspath(path)} cannot be written: {_why(error)}; name another file"
        raise FileError(message, kind="file", code=1) from error


def _why(error: OSError | UnicodeDecodeError) -> str:
    return str(error.strerror) if isinstance(error, OSError) else "it is no text in UTF-8"
