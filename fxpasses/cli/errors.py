"""What an error means to the caller of a command: wrong use (2) or failed work (1).

A command raises `Misuse` or `Failure` with one line that states the fact and the way out.
"""

from __future__ import annotations

import click

from fxpasses.errors import (
    NoFixpoint,
    PassError,
    PassFailed,
    RewriteRefused,
    UnknownPass,
    VerificationFailed,
)


class Failure(click.ClickException):
    """The work failed: exit code 1."""

    exit_code = 1


class Misuse(click.ClickException):
    """The command was used wrongly, or given a bad file: exit code 2."""

    exit_code = 2


_FAILED = (VerificationFailed, RewriteRefused, NoFixpoint, PassFailed)
_BAD_PATH = (FileNotFoundError, PermissionError, NotADirectoryError, IsADirectoryError)


def as_click(error: Exception) -> click.ClickException:
    """The click exception that reports `error` in one line with the right exit code."""
    if isinstance(error, click.ClickException):
        return error
    if isinstance(error, UnknownPass):
        return Misuse(
            f"{one_line(error)} (--load FILE, before the command, brings passes of a file)"
        )
    if isinstance(error, PassError):
        return (Failure if isinstance(error, _FAILED) else Misuse)(one_line(error))
    if isinstance(error, OSError) and error.filename:
        kind = Misuse if isinstance(error, _BAD_PATH) else Failure
        return kind(f"{error.filename}: {error.strerror}")
    return Failure(f"{type(error).__name__}: {one_line(error)} (--debug shows where)")


def one_line(error: BaseException) -> str:
    """The first line of an error's message that says something."""
    lines = (line.strip() for line in str(error).splitlines())
    return next(filter(None, lines), type(error).__name__)
