"""Results: plain objects around the JSON of the program."""

from __future__ import annotations

import html
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ._calls import Call, FileText

if TYPE_CHECKING:
    import pandas

    from ._calls import Source

_GIB = 2**30


def _table(rows: list[dict[str, str]]) -> str:
    if not rows:
        return ""
    titles = list(dict.fromkeys(title for row in rows for title in row))
    head = "".join(f"<th>{html.escape(title)}</th>" for title in titles)
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape(row.get(title, '-'))}</td>" for title in titles) + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _time(nanoseconds: float) -> str:
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if nanoseconds >= size:
            return f"{nanoseconds / size:.4g} {unit}"
    return f"{nanoseconds:.4g} ns"


def _schedule(strategy: dict[str, Any]) -> str:
    """As in the tables of the program: without a pipeline, 1F1B is the order of every program."""
    name = str(strategy.get("schedule", ""))
    return "-" if strategy.get("pp", 1) == 1 and name == "1f1b" else name


def _figures(plan: dict[str, Any]) -> dict[str, str]:
    strategy = plan["strategy"]
    sizes = " ".join(f"{axis.upper()}{strategy[axis]}" for axis in ("tp", "pp", "cp", "ep", "dp")
                     if strategy.get(axis, 1) != 1)
    return {
        "parallelism": sizes or "one device",
        "schedule": _schedule(strategy),
        "micro-batch": str(strategy.get("micro_batch", "")),
        "recompute": str(strategy.get("recompute", "")),
        "step": _time(plan["step_time_ns"]),
        "tokens/s/GPU": f"{plan['tokens_per_s_per_gpu']:.1f}",
        "MFU": f"{100 * plan['mfu']:.1f} %",
        "bubble": f"{100 * plan['bubble']['period']:.1f} %",
        "peak memory": f"{plan['peak_memory_bytes'] / _GIB:.3g} GiB",
        "capacity": f"{plan['memory_capacity_bytes'] / _GIB:.3g} GiB",
    }


def _number_or_text(text: str) -> int | float | str:
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            pass
    return text


def _problem(point: dict[str, Any]) -> str:
    """Why a combination of a sweep has no figures."""
    return "; ".join(f"{problem['where']}: {problem['what']}" for problem in point["problems"])


def _flat(value: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested objects as columns such as "strategy.tp"; lists stay as they are."""
    row: dict[str, Any] = {}
    for key, item in value.items():
        if isinstance(item, dict):
            row.update(_flat(item, f"{prefix}{key}."))
        else:
            row[prefix + key] = item
    return row


class Result:
    """What a command returned. `json` is the text that it prints with --json."""

    def __init__(self, call: Call, text: str) -> None:
        self._call = call
        self.json = text
        self._value: dict[str, Any] = json.loads(text)

    def to_dict(self) -> dict[str, Any]:
        """A copy of the result as dicts, lists, numbers and strings."""
        return json.loads(self.json)

    def __getitem__(self, key: str) -> Any:
        return self._value[key]

    def _rows(self) -> list[dict[str, Any]]:
        return [self._value]

    def to_pandas(self) -> pandas.DataFrame:
        """One row per plan, point, run or device. Requires pandas."""
        import pandas

        return pandas.DataFrame([_flat(row) for row in self._rows()])

    def _html_rows(self) -> list[dict[str, str]]:
        return [{key: str(item) for key, item in _flat(row).items()} for row in self._rows()]

    def _repr_html_(self) -> str:
        return _table(self._html_rows())

    def __repr__(self) -> str:
        rows = [" ".join(f"{key}={item}" for key, item in row.items()) for row in self._html_rows()]
        return f"<{type(self).__name__}: {'; '.join(rows[:3])}{' …' if len(rows) > 3 else ''}>"


class WithTimeline(Result):
    """A result with the timeline of one step."""

    def _job(self) -> tuple[dict[str, Any], tuple[Any, ...]]:
        """Options and files of the job, for other commands."""
        raise NotImplementedError

    def to_perfetto(self, path: Source) -> None:
        """Write the predicted timeline; open it at https://ui.perfetto.dev."""
        options, files = self._job()
        Call("simulate", options, *files).run(output=path)

    def to_html(self, path: Source) -> None:
        """Write one self-contained page: figures, timeline, memory, single changes, sources."""
        options, files = self._job()
        Call("report", options, *files).run(output=path)

    def timeline_svg(self) -> str:
        """The compute streams of all pipeline ranks."""
        options, files = self._job()
        return Call("report", options, *files).run(svg=True)[0]

    def _repr_html_(self) -> str:
        return super()._repr_html_() + self.timeline_svg()


#: Options of `simulate` that other commands on the same job do not have.
_OF_SIMULATE = {
    "all_ranks", "contention", "steps", "straggler", "jitter", "draws", "seed", "threads", "mtbf",
    "checkpoint_write", "restart", "checkpoint_interval",
}


class Simulation(WithTimeline):
    """A predicted training step."""

    @property
    def step_time(self) -> float:
        """Seconds."""
        return self["step_time_ns"] / 1e9

    @property
    def fits(self) -> bool:
        """Whether every device has enough memory."""
        return self["fits"]

    def to_perfetto(self, path: Source) -> None:
        """Write the predicted timeline; open it at https://ui.perfetto.dev."""
        self._call.run(output=path)

    def _job(self) -> tuple[dict[str, Any], tuple[Any, ...]]:
        options = self._call.options.items()
        return {k: v for k, v in options if k not in _OF_SIMULATE}, self._call.files

    def _html_rows(self) -> list[dict[str, str]]:
        varied = self._value.get("variation") or {}
        steps = {"with stragglers": "with_stragglers_ns", "median with jitter": "p50_ns"}
        return [{**_figures(self._value),
                 **{title: _time(varied[key]) for title, key in steps.items() if key in varied}}]


class Plans(WithTimeline):
    """The fastest plans that were found, best first. `plan_file` is the best one as a file."""

    def __init__(self, call: Call, text: str, plan_file: str | None) -> None:
        super().__init__(call, text)
        self.plan_file = plan_file

    def __len__(self) -> int:
        return len(self._rows())

    @property
    def best(self) -> dict[str, Any] | None:
        """Figures of the best plan; None if none fits."""
        return self._rows()[0] if self._rows() else None

    @property
    def infeasible(self) -> dict[str, Any] | None:
        """Why no plan fits, and the nearest one."""
        return self._value.get("infeasible")

    def save(self, path: Source) -> None:
        """Write the best plan, for `meshwright simulate`, `explain`, `run` and `export`."""
        Path(path).write_text(self._need_plan(), encoding="utf-8")

    def _job(self) -> tuple[dict[str, Any], tuple[Any, ...]]:
        return {}, (self.as_file(),)

    def timeline_svg(self) -> str:
        """The compute streams of the best plan; empty if none fits."""
        return super().timeline_svg() if self.plan_file else ""

    def as_file(self) -> FileText:
        """The best plan for other commands."""
        return FileText("best.plan.json", self._need_plan())

    def _need_plan(self) -> str:
        if self.plan_file is None:
            raise ValueError(f"no plan fits: {(self.infeasible or {}).get('reason', '')}")
        return self.plan_file

    def _rows(self) -> list[dict[str, Any]]:
        return self._value.get("plans") or self._value.get("points") or []

    def _html_rows(self) -> list[dict[str, str]]:
        return [_figures(row) if "strategy" in row else _flat(row) for row in self._rows()]


class Fit(Result):
    """Whether a job fits in memory."""

    @property
    def fits(self) -> bool:
        return self["fits"]

    @property
    def changes(self) -> list[str]:
        """Single changes that make it fit, smallest first; empty if it fits."""
        return [change["change"] for change in self["changes"]]

    def _rows(self) -> list[dict[str, Any]]:
        if self.fits:
            return [{"change": "none needed", **self["plan"]}]
        return [{"change": change["change"], **change["plan"]} for change in self["changes"]]

    def _html_rows(self) -> list[dict[str, str]]:
        return [{"change": row["change"], **_figures(row)} for row in self._rows()]


class Sweep(Result):
    """Figures of all combinations of the swept values."""

    def _rows(self) -> list[dict[str, Any]]:
        return [
            {
                **{flag: _number_or_text(value) for flag, value in point["values"].items()},
                **(point["plan"] or {"problem": _problem(point)}),
            }
            for point in self["points"]
        ]

    def _html_rows(self) -> list[dict[str, str]]:
        return [
            {**point["values"],
             **(_figures(point["plan"]) if point["plan"] else {"problem": _problem(point)})}
            for point in self["points"]
        ]


class Partition(Result):
    """The stages of an operator graph on the devices of a cluster, and the simulated training step."""

    @property
    def stages(self) -> list[dict[str, Any]]:
        """Devices, time, memory and names of the nodes of every stage; empty if none fits."""
        return self["stages"]

    @property
    def step_time(self) -> float | None:
        """Seconds of the simulated training step; None for inference, or if no partition fits."""
        step = self._value.get("step")
        return step["step_ns"] / 1e9 if step else None

    @property
    def infeasible(self) -> dict[str, Any] | None:
        """Why no partition fits."""
        return self._value.get("infeasible")

    def _rows(self) -> list[dict[str, Any]]:
        return [{"stage": number, **stage} for number, stage in enumerate(self.stages)]

    def _html_rows(self) -> list[dict[str, str]]:
        return [
            {key: str(len(item)) if key == "nodes" else str(item)
             for key, item in row.items() if key == "nodes" or not isinstance(item, list)}
            for row in self._rows()
        ]


class Schedule(Result):
    """A pipeline schedule: the order of passes of every device, and its timing."""

    @property
    def orders(self) -> list[list[str]]:
        """Passes of every device, such as "0F1": forward of micro-batch 1 on stage 0."""
        return self["orders"]

    def _rows(self) -> list[dict[str, Any]]:
        return [
            {"device": device, "passes": " ".join(order), "peak_activations": peak}
            for device, (order, peak) in enumerate(zip(self.orders, self["peak_activations"]))
        ]


class Comparison(Result):
    """A measured timeline next to its prediction."""

    @property
    def error(self) -> float | None:
        """Of the step time: predicted / measured - 1."""
        return self["step"]["error"]

    def _rows(self) -> list[dict[str, Any]]:
        return [{"kind": kind, **figures} for kind, figures in self["by_kind"].items()]


class Validation(Result):
    """Predictions of published runs next to their measured values."""

    def _rows(self) -> list[dict[str, Any]]:
        return self["runs"]


class Calibration(Result):
    """Measured kernels, collectives and launches: an argument `calibration` of other functions."""

    def __init__(self, call: Call, text: str, calibration_file: str) -> None:
        super().__init__(call, text)
        self.calibration_file = calibration_file

    @property
    def step_time(self) -> float:
        """Seconds: the median of the recorded steps."""
        return self["step_time_ns"] / 1e9

    def save(self, path: Source) -> None:
        """Write the calibration, for --calibration of the program."""
        Path(path).write_text(self.calibration_file, encoding="utf-8")

    def as_file(self) -> FileText:
        """The calibration for other commands."""
        return FileText("trace.calib.json", self.calibration_file)

    def _rows(self) -> list[dict[str, Any]]:
        return self["families"]
