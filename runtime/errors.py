"""Errors of the targets; each is told to the user as it is."""


class TargetError(RuntimeError):
    """A target can't build or run a program: a tool or a device is missing, or the program does not fit."""


class LaunchFailure(RuntimeError):
    """A launch ended badly: a deadlock, a fault, or out of time."""
