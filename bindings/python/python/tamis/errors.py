"""What can go wrong. The text of each is a sentence that says what to do."""

from __future__ import annotations

__all__ = [
    "BuildError",
    "DecodeError",
    "FullError",
    "MergeError",
    "TamisError",
    "UnsupportedError",
]


class TamisError(Exception):
    """What all errors of this package share."""


class BuildError(TamisError, ValueError):
    """A filter cannot be made of this configuration and these keys."""


class FullError(TamisError):
    """An insertion was refused; those before it in the batch are in."""

    #: How many keys of the batch were inserted before the one that was refused.
    accepted: int = 0


class DecodeError(TamisError, ValueError):
    """A file is no filter, or a damaged one, or needs another secret."""


class MergeError(TamisError, ValueError):
    """Two filters do not go together."""


class UnsupportedError(TamisError, TypeError):
    """Filters of this kind cannot do this."""
