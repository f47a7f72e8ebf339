"""
Plans and simulates the parallel training of large models.

Every function is a command of the program `meshwright` and takes its options as keyword arguments,
with `_` for `-`: `plan(..., global_batch=128)` is `meshwright plan --global-batch 128`.
`help("plan")` lists them. The JSON of results is that of the program with `--json`.

>>> import meshwright
>>> step = meshwright.simulate(model="gpt2", cluster="dgx-a100", tp=2, dp=4, global_batch=64,
...                            seq=1024)
>>> step.fits
True
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Union

from . import _core
from ._calls import Call, Model, Option, Source, help
from ._errors import EnvironmentFailure, Error, InputError, Problem, UsageError
from ._results import (Calibration, Comparison, Fit, Partition, Plans, Result, Schedule, Simulation,
                       Sweep, Validation)
from ._sweeps import Map, evaluate_over
from ._torch import OperatorGraph, from_torch
from ._training import StepTimer

__version__: str = _core.version
__all__ = [
    "Calibration", "Comparison", "EnvironmentFailure", "Error", "Fit", "InputError", "OperatorGraph",
    "Partition", "Plans", "Problem", "Result", "Schedule", "Simulation", "StepTimer", "Sweep",
    "UsageError", "Validation", "calibrate_from_trace", "compare", "fit", "from_torch", "help", "plan",
    "schedule", "simulate", "sweep", "validate",
]


def plan(model: Model, cluster: Source, *, gpus: int | str | None = None,
         global_batch: int | None = None, seq: int | str | None = None, top: int | None = None,
         time_limit: int | None = None, trainer: Source | None = None, **options: Option) -> Plans:
    """
    Search the fastest plans that fit in memory. Strategy options such as `tp=8` are fixed.

    >>> plans = plan("gpt2", "dgx-a100", gpus=8, global_batch=64, seq=1024, top=3)
    >>> len(plans), plans.infeasible
    (3, None)
    >>> plans.best["strategy"]["dp"]
    8
    """
    call = Call("plan", dict(model=model, cluster=cluster, gpus=gpus, global_batch=global_batch,
                             seq=seq, top=top, time_limit=time_limit, trainer=trainer, **options))
    with tempfile.TemporaryDirectory(prefix="meshwright-") as folder:
        file = Path(folder, "best.plan.json")
        text, _ = call.run(json=True, output=file)
        return Plans(call, text, file.read_text(encoding="utf-8") if file.exists() else None)


def simulate(plan: Plans | Source | None = None, *, model: Model | None = None,
             cluster: Source | None = None, gpus: int | None = None, trainer: Source | None = None,
             **options: Option) -> Simulation:
    """
    Predict one training step of a plan (a result of `plan()`, a file, or "SET#ID" for a published
    run), or of a model on a cluster with strategy options.

    >>> step = simulate(model="gpt2", cluster="dgx-a100", pp=4, dp=2, global_batch=64, seq=1024)
    >>> step["gpus"]
    8
    >>> simulate(model="gpt2", cluster="dgx-a100", tp=5, global_batch=64, seq=1024)
    ... # doctest: +ELLIPSIS
    Traceback (most recent call last):
    meshwright.InputError: --tp: tensor-parallel size 5 does not divide the 12 attention heads of 'gpt2'
      hint: use one of: 1, 2, 3, 4
    ...
    """
    options = dict(model=model, cluster=cluster, gpus=gpus, trainer=trainer, **options)
    file = plan.as_file() if isinstance(plan, Plans) else plan
    call = Call("simulate", options, *([] if file is None else [file]))
    return Simulation(call, call.run(json=True)[0])


def fit(model: Model, cluster: Source, *, gpus: int | str | None = None,
        global_batch: int | None = None, seq: int | str | None = None,
        trainer: Source | None = None, **options: Option) -> Fit:
    """
    Whether a job fits in memory, and the smallest change that makes it fit.

    >>> answer = fit("llama-3.1-8b", "dgx-h100", gpus=1, seq=4096)
    >>> answer.fits, answer.changes[0]
    (False, '--gpus 2')
    """
    call = Call("fit", dict(model=model, cluster=cluster, gpus=gpus, global_batch=global_batch,
                            seq=seq, trainer=trainer, **options))
    return Fit(call, call.run(json=True)[0])


def schedule(name: str = "auto", *, stages: int | None = None, microbatches: int | None = None,
             tf: Option = None, tb: Option = None, tw: Option = None, tcomm: Option = None,
             unit: str | None = None, cap: int | None = None, **options: Option) -> Schedule:
    """
    Generate a pipeline schedule, or synthesize one (`auto`), and time it.

    >>> schedule("1f1b", stages=2, microbatches=2).orders
    [['0F0', '0F1', '0B0', '0B1'], ['1F0', '1B0', '1F1', '1B1']]
    """
    call = Call("schedule", dict(name=name, stages=stages, microbatches=microbatches, tf=tf, tb=tb,
                                 tw=tw, tcomm=tcomm, unit=unit, cap=cap, **options))
    return Schedule(call, call.run(json=True)[0])


def sweep(model: Model, cluster: Source, over: Mapping[str, Sequence[Union[int, float, str]]], *,
          gpus: int | None = None, trainer: Source | None = None, map: Map | None = None,
          **options: Option) -> Sweep:
    """
    Simulate all combinations of the values of some options.

    >>> result = sweep("gpt2", "dgx-a100", {"tp": [1, 2, 4]}, gpus=8, global_batch=64, seq=1024)
    >>> [point["values"]["tp"] for point in result["points"]]
    ['1', '2', '4']

    With `map`, workers of another library evaluate the combinations, and the result is the same. It
    is called like the built-in `map`, and may return futures:

        sweep(..., map=dask.distributed.Client("tcp://scheduler:8786").map)
        sweep(..., map=ray.util.multiprocessing.Pool().map)
        sweep(..., map=concurrent.futures.ProcessPoolExecutor().map)

    Workers need this package in the same version, and files at the same paths.
    """
    axes = [f"{name.replace('_', '-')}={','.join(str(value) for value in values)}"
            for name, values in over.items()]
    if "part" in options or (map is not None and "points" in options):
        raise TypeError("sweep() takes no 'part', and no 'points' together with 'map'")
    call = Call("sweep", dict(model=model, cluster=cluster, gpus=gpus, trainer=trainer, over=axes,
                              **options))
    if map is not None:
        count = math.prod(len(values) for values in over.values())
        call.options["points"] = evaluate_over(map, call, count)
    return Sweep(call, call.run(json=True)[0])


def compare(predicted: Source, measured: Source, *, max_error: float | str | None = None,
            **options: Option) -> Comparison:
    """
    Compare a measured timeline (`meshwright run -o`) with its prediction (`to_perfetto()`).
    With `max_error`, `result["verdict"]` is "within" or "beyond".
    """
    call = Call("compare", dict(max_error=max_error, **options), predicted, measured)
    return Comparison(call, call.run(json=True)[0])


def calibrate_from_trace(trace: Source, *, gpus_per_node: int | None = None) -> Calibration:
    """
    Learn kernel, collective and launch times from a trace of PyTorch's profiler (Kineto), as
    `torch.profiler.profile(record_shapes=True)` and `export_chrome_trace("trace.json.gz")` write it.

        measured = calibrate_from_trace("trace.json.gz")
        simulate(plan, calibration=measured)
    """
    call = Call("import", dict(gpus_per_node=gpus_per_node), trace)
    with tempfile.TemporaryDirectory(prefix="meshwright-") as folder:
        file = Path(folder, "trace.calib.json")
        text, _ = call.run(json=True, output=file)
        return Calibration(call, text.replace(str(file), file.name),
                           file.read_text(encoding="utf-8"))


def validate(*runs: Source, **options: Option) -> Validation:
    """
    Predict published training runs and compare with their measured values: presets, files, or
    "SET#ID" for one run; without any, all presets.

    >>> validate("korthikanti-2022#P1605")["runs"][0]["set"]
    'korthikanti-2022'
    """
    call = Call("validate", options, *runs)
    return Validation(call, call.run(json=True)[0])
