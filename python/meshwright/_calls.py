"""From Python values to the options of the program, and to the files that they name."""

from __future__ import annotations

import json
import os
import re
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple, Union

from . import _core
from ._errors import Error

#: A file, or a preset such as "llama-3.1-70b" (`meshwright show models`).
Source = Union[str, "os.PathLike[str]"]
#: Also the contents of a config.json, or a configuration object of transformers.
Model = Union[Source, Mapping[str, Any], Any]
#: A flag, a value, or a list of values that are joined by commas.
Option = Union[None, bool, int, float, str, "os.PathLike[str]", Sequence[Union[int, float, str]]]


class FileText(NamedTuple):
    """A file that only exists while the command runs."""

    name: str
    text: str | bytes


#: Options that are given once per value of a list.
_REPEATED = {"over", "set", "straggler"}


def _text_of(value: Option) -> str:
    if isinstance(value, (str, os.PathLike)) or not isinstance(value, Sequence):
        return os.fspath(value) if isinstance(value, os.PathLike) else str(value)
    return ",".join(str(item) for item in value)


def flags_of(options: Mapping[str, Option]) -> list[str]:
    """
    The command line of keyword arguments.

    >>> flags_of({"tp": 8, "sequence_parallel": True, "trainer": None, "tf": [1, 2.5]})
    ['--tp=8', '--sequence-parallel', '--tf=1,2.5']
    """
    flags = []
    for name, value in options.items():
        flag = "--" + name.rstrip("_").replace("_", "-")
        if value is True:
            flags.append(flag)
        elif name in _REPEATED and not isinstance(value, str) and value:
            flags += [f"{flag}={item}" for item in value]
        elif value is not None and value is not False:
            flags.append(f"{flag}={_text_of(value)}")
    return flags


def _name_of(config: Mapping[str, Any]) -> str:
    name = str(config.get("_name_or_path") or config.get("model_type") or "model")
    return re.sub(r"[^A-Za-z0-9._-]", "-", name.rstrip("/").rsplit("/", 1)[-1]) or "model"


def _source_of(model: Model) -> Source | FileText:
    if isinstance(model, (str, os.PathLike, FileText)):
        return model
    config = model.to_dict() if hasattr(model, "to_dict") else model
    if not isinstance(config, Mapping):
        raise TypeError(
            "model must be a name, a file, a dict or a configuration object, "
            f"got {type(model).__name__}"
        )
    return FileText(_name_of(config) + ".json", json.dumps(config, default=str))


class Call:
    """A command and its options. Can be repeated: the same input gives the same result."""

    def __init__(
        self, command: str, options: Mapping[str, Any], *files: Source | FileText
    ) -> None:
        self.command = command
        self.options = dict(options)
        if self.options.get("model") is not None:
            self.options["model"] = _source_of(self.options["model"])
        if hasattr(self.options.get("calibration"), "as_file"):
            self.options["calibration"] = self.options["calibration"].as_file()
        self.files = files

    def run(self, **more: Option) -> tuple[str, int]:
        """The text and the exit status; `more` adds options."""
        with tempfile.TemporaryDirectory(prefix="meshwright-") as folder:

            def written(value: Any) -> Any:
                if not isinstance(value, FileText):
                    return value
                path = Path(folder, value.name)
                if isinstance(value.text, bytes):
                    path.write_bytes(value.text)
                else:
                    path.write_text(value.text, encoding="utf-8")
                return path

            options = {name: written(value) for name, value in self.options.items()}
            files = [os.fspath(written(file)) for file in self.files]
            return _run([self.command, *files, *flags_of({**options, **more})], folder)


def _run(arguments: list[str], folder: str = "") -> tuple[str, int]:
    try:
        text, status, notes = _core.call(arguments)
    except Error as error:
        if not folder:
            raise
        # Errors name temporary files by what they stand for: "gpt2.json#/n_head".
        inside = [[part.replace(folder + os.sep, "") for part in p] for p in error.problems]
        raise type(error)(inside) from None
    if notes:
        warnings.warn(notes.rstrip("\n"), stacklevel=4)
    return text, status


def help(command: str) -> str:
    """
    The options of a command. Keyword arguments are named like them, with `_` for `-`.

    >>> print(help("simulate").splitlines()[0])
    Predict the time and memory of a training step.
    """
    return _run([command, "--help"])[0]
