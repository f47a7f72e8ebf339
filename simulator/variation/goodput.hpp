/// Goodput of a training run under failures and periodic checkpoints.
///
/// Failures are exponentially distributed with mean M = device MTBF / devices and can occur in any
/// phase. The job trains for an interval t, then writes a checkpoint in C. A failure loses all work
/// since the last checkpoint and costs a restart R, which may fail as well. The model is Daly's ("A
/// higher order estimate of the optimum checkpoint interval for restart dumps", FGCS 22, 2006,
/// eq. 20). It follows from two facts about a stretch of length L that must pass without a failure:
///   retried from its start until it succeeds, it takes M (exp(L / M) - 1) on average;
///   the first attempt of L = t + C fails with probability 1 - exp(-L / M), and from then on R + L
///   is such a stretch, so that one interval takes
///     X = M (1 - exp(-L/M)) + (1 - exp(-L/M)) M (exp((R+L)/M) - 1)
///       = M exp(R / M) (exp((t + C) / M) - 1)
/// and the goodput is t / X. R scales X for all t alike, so the optimal t does not depend on it:
///   d/dt (t / X) = 0   <=>   (1 - t / M) exp((t + C) / M) = 1
/// For small C / M, expanding to second order gives t^2 = 2 C M: Young's rule (CACM 17, 1974).
///
/// Worked number: 16,384 devices of 50,000 h: M = 10,986 s. C = 60 s, R = 300 s. Young: t = 1148.2
/// s. Exactly: t = 1108.55 s (Daly's series: 1108.547 s), X = 1267.09 s, goodput 87.49 %.
#pragma once

#include <optional>

#include "core/base/units.hpp"

namespace meshwright {

struct FailureModel {
  Seconds device_mtbf;       ///< mean time between failures of one device, all causes, above zero
  int devices = 1;           ///< any failure stops all of them
  Seconds checkpoint_write;  ///< time the job is paused per checkpoint, above zero
  Seconds restart;           ///< from the failure until training resumes, 0 or more
  friend bool operator==(const FailureModel&, const FailureModel&) = default;
};

struct Goodput {
  Seconds interval;          ///< training time between checkpoints
  double useful = 0;         ///< share of time spent on steps that are not lost
  double checkpoints = 0;    ///< share of time spent on completed checkpoints
  double lost = 0;           ///< share of time spent on repeated work and restarts
  Seconds between_failures;  ///< M
  friend bool operator==(const Goodput&, const Goodput&) = default;
};

/// Mean time between failures of the whole job.
Seconds job_mtbf(const FailureModel& model);
/// sqrt(2 C M).
Seconds young_interval(const FailureModel& model);
/// Optimal t by the equation above, to full precision.
Seconds best_interval(const FailureModel& model);
/// Goodput with checkpoints every `interval`, or every best_interval(). Zero for intervals that are
/// too long to ever complete (more than 700 M).
Goodput goodput(const FailureModel& model, std::optional<Seconds> interval = {});

}  // namespace meshwright
