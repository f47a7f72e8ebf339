/// What failures and checkpoints leave of a cluster's time.
///
/// Failures come at random, on the average one in M = device MTBF / devices (exponential), in every
/// phase. Work goes on for an interval t, then a checkpoint takes C. A failure throws away all
/// since the last checkpoint and costs a restart R, which may fail too. By Daly ("A higher order
/// estimate of the optimum checkpoint interval for restart dumps", FGCS 22, 2006, eq. 20), which
/// follows from two facts about a stretch of length L that must pass without a failure:
///   repeated from its start until it succeeds, it takes M (exp(L / M) - 1) on the average;
///   the first try of L = t + C fails with probability 1 - exp(-L / M), and from then on R + L is
///   such a stretch, so that one interval takes
///     X = M (1 - exp(-L/M)) + (1 - exp(-L/M)) M (exp((R+L)/M) - 1)
///       = M exp(R / M) (exp((t + C) / M) - 1)
/// and the goodput is t / X. R scales all intervals alike, so the best t does not depend on it:
///   d/dt (t / X) = 0   <=>   (1 - t / M) exp((t + C) / M) = 1
/// For small C / M, expanding to second order gives t^2 = 2 C M: Young's rule (CACM 17, 1974).
///
/// Worked number: 16,384 devices of 50,000 h: M = 10,986 s. C = 60 s, R = 300 s. Young: t = 1148.2
/// s. Exactly: t = 1108.55 s (Daly's series: 1108.547 s), X = 1267.09 s, goodput 87.49 %.
#pragma once

#include <optional>

#include "core/units.hpp"

namespace meshwright {

struct FailureModel {
  Seconds device_mtbf;       ///< mean time between failures of one device, all causes, above zero
  int devices = 1;           ///< any failure stops all of them
  Seconds checkpoint_write;  ///< the job stands still for it, above zero
  Seconds restart;           ///< from the failure to the first step that goes on, 0 or more
  friend bool operator==(const FailureModel&, const FailureModel&) = default;
};

struct Goodput {
  Seconds interval;          ///< of work between checkpoints
  double useful = 0;         ///< share of the time in which steps are done that last
  double checkpoints = 0;    ///< share that goes into checkpoints that last
  double lost = 0;           ///< share of work done twice and of restarts: the rest
  Seconds between_failures;  ///< M
  friend bool operator==(const Goodput&, const Goodput&) = default;
};

/// Mean time between failures of the whole job.
Seconds job_mtbf(const FailureModel& model);
/// sqrt(2 C M).
Seconds young_interval(const FailureModel& model);
/// The t of the equation above, to full precision.
Seconds best_interval(const FailureModel& model);
/// For that interval, or for the best one. An interval so long that it is never finished (more than
/// 700 M) has a goodput of zero.
Goodput goodput(const FailureModel& model, std::optional<Seconds> interval = {});

}  // namespace meshwright
