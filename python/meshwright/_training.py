"""For training scripts: measured steps next to their prediction."""

from __future__ import annotations

import time
import warnings
from typing import Any, Callable, Union

from ._results import Plans, Simulation, _time


class StepTimer:
    """
    Prints the measured step time next to the predicted one, and warns when they part.

    Call it at the end of every training step. The first call starts the clock, so that compilation
    and warm-up in the first step are not measured. It reads the clock only: a mean over `every`
    steps is right although kernels of GPUs are launched ahead.

    `predicted` is a result of `simulate()` or `plan()`, or seconds. The expected range is p10 to p90
    of similar published runs if the prediction has one, else `tolerance` to both sides; a
    `tolerance` that is given is used in either case.

    >>> timer = StepTimer(2.0, tolerance=0.1, every=1, clock=iter([0.0, 2.1, 5.1]).__next__)
    >>> timer()
    >>> timer()
    step 1: measured 2.1 s, predicted 2 s (+5.0 %)
    >>> import warnings
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     timer()
    step 2: measured 3 s, predicted 2 s (+50.0 %)
    >>> print(caught[0].message)
    the step takes 3 s and leaves the predicted range of 1.8 s to 2.2 s
    """

    def __init__(self, predicted: Union[Simulation, Plans, float], *,
                 tolerance: float | None = None, every: int = 10,
                 log: Callable[[str], Any] = print,
                 clock: Callable[[], float] = time.perf_counter) -> None:
        if every < 1:
            raise ValueError(f"every must be at least 1, got {every}")
        if tolerance is not None and not tolerance > 0:
            raise ValueError(f"tolerance must be above 0, got {tolerance}")
        self.predicted, self.range = _prediction(predicted, tolerance)
        self.every, self._log, self._clock = every, log, clock
        self.step = 0
        self._start: float | None = None  # of the steps that are not printed yet
        self._is_outside = False

    def __call__(self) -> None:
        now = self._clock()
        if self._start is None:
            self._start = now
            return
        self.step += 1
        if self.step % self.every:
            return
        measured = (now - self._start) / self.every
        self._start = now
        error = 100 * (measured / self.predicted - 1)
        self._log(f"step {self.step}: measured {_seconds(measured)}, "
                  f"predicted {_seconds(self.predicted)} ({error:+.1f} %)")
        low, high = self.range
        was_outside, self._is_outside = self._is_outside, not low <= measured <= high
        if self._is_outside and not was_outside:
            warnings.warn(f"the step takes {_seconds(measured)} and leaves the predicted range of "
                          f"{_seconds(low)} to {_seconds(high)}", stacklevel=2)


def _seconds(value: float) -> str:
    return _time(value * 1e9)


_USUAL_TOLERANCE = 0.1


def _prediction(predicted: Union[Simulation, Plans, float], tolerance: float | None
                ) -> tuple[float, tuple[float, float]]:
    """Seconds, and the range in which a step is expected."""
    figures: Any = {}
    if isinstance(predicted, Plans):
        figures = predicted.best
        if figures is None:
            raise ValueError("no plan fits")
    elif isinstance(predicted, Simulation):
        figures = predicted.to_dict()
    seconds = figures["step_time_ns"] / 1e9 if figures else float(predicted)  # type: ignore[arg-type]
    if not seconds > 0:
        raise ValueError(f"the predicted step time must be above 0, got {seconds}")
    validated = figures.get("step_time_range") if tolerance is None else None
    if validated:
        return seconds, (validated["p10_ns"] / 1e9, validated["p90_ns"] / 1e9)
    share = _USUAL_TOLERANCE if tolerance is None else tolerance
    return seconds, (seconds * (1 - share), seconds * (1 + share))
