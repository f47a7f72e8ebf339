"""Sweeps whose combinations are evaluated by workers of another library."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from ._calls import Call, FileText

#: Like the built-in `map`: calls a function with every item of a list. The results are values or
#: futures, in the order of the list.
Map = Callable[[Callable[["SweepPart"], str], "list[SweepPart]"], Iterable[Any]]

#: Enough for workers of unequal speed; every part reads the model again.
_MOST_PARTS = 64


@dataclass(frozen=True)
class SweepPart:
    """A task for a worker."""

    options: dict[str, Any]
    part: str

    def evaluate(self) -> str:
        """A line per combination."""
        return Call("sweep", self.options).run(part=self.part)[0]


def _results(items: Iterable[Any]) -> list[str]:
    items = list(items)
    try:
        return [item.result() if hasattr(item, "result") else item for item in items]
    except BaseException:
        for item in items:
            if hasattr(item, "cancel"):
                item.cancel()
        raise


def evaluate_over(map: Map, call: Call, combinations: int) -> FileText:
    """The evaluated combinations of a sweep, for its option `points`."""
    options = dict(call.options)
    if options.get("threads") is None:
        options["threads"] = 1  # workers share the cores of their hosts
    count = max(1, min(combinations, _MOST_PARTS))
    parts = [SweepPart(options, f"{index}/{count}") for index in range(1, count + 1)]
    return FileText("sweep.points", "".join(_results(map(SweepPart.evaluate, parts))))
