#include "models/kineto/kineto_work.hpp"

#include <algorithm>

namespace meshwright {
namespace {

/// Calls that take longer than this times the median are warm-up (autotuning, loading of modules).
constexpr double kOutlier = 3;

}  // namespace

Typical typical(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  const double limit = kOutlier * times[times.size() / 2];
  double sum = 0;
  std::size_t count = 0;
  for (; count < times.size() && times[count] <= limit; ++count) sum += times[count];
  const double median = times[times.size() / 2];
  const double quartiles = times[3 * (times.size() - 1) / 4] - times[(times.size() - 1) / 4];
  constexpr double kMostSpread = 1e6;
  return {sum / static_cast<double>(count),
          median > 0 ? std::min(quartiles / median, kMostSpread) : 0};
}

std::int64_t traffic_of(Routine routine, KinetoPass pass, std::int64_t elements, std::int64_t e) {
  const bool forward = pass == KinetoPass::kForward;
  switch (routine) {
    case Routine::kSwiGlu:
      return elements * e * (forward ? 3 : 5);
    case Routine::kResidual:
      return elements * e * 3;
    case Routine::kRotary:
      return elements * e * 2;
    case Routine::kEmbedding:
      return elements * (forward ? 2 * e : e + 2 * kFloat32Bytes);
    case Routine::kBias:
      return elements * e;
    case Routine::kCrossEntropy:
      return elements * (e + kFloat32Bytes);
    case Routine::kUpdate:
      return elements * (e == kFloat32Bytes ? 44 : 46);
    default:
      return elements * e * (forward ? 2 : 3);
  }
}

Phase phase_of(Routine routine, KinetoPass pass) {
  if (pass == KinetoPass::kUpdate) return Phase::kUpdate;
  if (pass == KinetoPass::kForward) return Phase::kForward;
  return routine == Routine::kEmbedding || routine == Routine::kBias ? Phase::kBackwardWeight
                                                                     : Phase::kBackwardInput;
}

std::int64_t launches_for(Routine routine, KinetoPass pass) {
  return routine == Routine::kCrossEntropy && pass == KinetoPass::kForward ? 3 : 1;
}

}  // namespace meshwright
