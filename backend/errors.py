"""What can go wrong in lowering, loading and calling, named as ExecuTorch names it.

    try:
        program = backend.load("model.pte")
    except backend.InvalidProgram as error:
        print(error)            # one line: the fact, then the way out

Every kind is a `BackendError`, so one `except` is enough where the kind does not matter. Errors of
the pass framework (`fxpasses.PassError`) pass through unchanged.
"""

from __future__ import annotations


class BackendError(Exception):
    """An error of the backend; the message is one line."""


class InvalidArgument(BackendError):
    """The caller passed something that the method or the function does not take."""


class NotSupported(BackendError):
    """A correct request that this backend, this machine or these versions cannot serve."""


class AccessFailed(BackendError):
    """A file, a device or the C++ compiler could not be reached."""


class InvalidProgram(BackendError):
    """A file that is no program of ours, or one that is damaged."""


class Internal(BackendError):
    """A tool below us (ExecuTorch, Inductor) failed on a program that we believed to be right."""


class SelfCheckFailed(BackendError):
    """A lowered program does not do what eager does, so it is not handed out."""


def first_line(error: BaseException) -> str:
    """The first line of `error` that says something, or its type where it says nothing."""
    lines = (line.strip() for line in str(error).splitlines())
    return next((line for line in lines if line), type(error).__name__)
