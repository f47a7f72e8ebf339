"""Exceptions: each says where, what and how to fix it."""

from __future__ import annotations

from typing import NamedTuple, Sequence


class Problem(NamedTuple):
    """One thing that is wrong."""

    where: str
    what: str
    hint: str

    def __str__(self) -> str:
        text = f"{self.where}: {self.what}"
        return f"{text}\n  hint: {self.hint}" if self.hint else text


class Error(Exception):
    """Base of all exceptions of this package. `where`, `what` and `hint` are of the first problem."""

    def __init__(self, problems: Sequence[tuple[str, str, str]]) -> None:
        self.problems = [Problem(*problem) for problem in problems]
        super().__init__("\n".join(map(str, self.problems)))

    def __reduce__(self):
        return type(self), ([tuple(problem) for problem in self.problems],)

    @property
    def where(self) -> str:
        return self.problems[0].where

    @property
    def what(self) -> str:
        return self.problems[0].what

    @property
    def hint(self) -> str:
        return self.problems[0].hint


class UsageError(Error, ValueError):
    """An option is unknown, missing, or has an invalid value."""


class InputError(Error, ValueError):
    """A model, cluster, plan or strategy is invalid."""


class EnvironmentFailure(Error, OSError):
    """A file cannot be read or written, or memory runs out."""

    def __str__(self) -> str:
        return "\n".join(map(str, self.problems))


for _error in (Error, UsageError, InputError, EnvironmentFailure):
    _error.__module__ = "meshwright"
