#include "models/kineto/kineto_host.hpp"

#include <algorithm>
#include <unordered_map>

#include "core/base/median.hpp"

namespace meshwright {
namespace {

constexpr double kHostSecondsPerNs = 1e-9;

bool is_synchronization(std::string_view call) {
  return call.find("Synchronize") != std::string_view::npos || call == "cudaMemcpy" ||
         call == "hipMemcpyWithStream";
}

double median_seconds(const std::vector<std::int64_t>& nanoseconds) {
  if (nanoseconds.empty()) return 0;
  return static_cast<double>(upper_median(nanoseconds)) * kHostSecondsPerNs;
}

/// A launch or a synchronization of the window, in the order of time.
struct HostCall {
  enum class Kind : std::uint8_t { kKernel, kBlockingCollective, kOtherCollective, kWait };
  std::int64_t start_ns = 0, end_ns = 0;
  KinetoPass pass = KinetoPass::kForward;
  Kind kind = Kind::kKernel;
};

/// By correlation; lookup only.
using CollectiveKinds = std::unordered_map<std::int64_t, HostCall::Kind>;

CollectiveKinds kinds_of_collectives(const KinetoTrace& trace) {
  Intervals compute;
  for (const KinetoGpuWork& work : trace.gpu)
    if (!is_communication(trace, work)) compute.emplace_back(work.start_ns, work.end_ns);
  compute = merged(compute);
  CollectiveKinds kinds;
  for (const KinetoGpuWork& work : trace.gpu) {
    if (work.correlation < 0 || !is_communication(trace, work)) continue;
    const std::int64_t beside = overlap_with(compute, work.start_ns, work.end_ns);
    kinds[work.correlation] = 2 * beside > work.end_ns - work.start_ns
                                  ? HostCall::Kind::kOtherCollective
                                  : HostCall::Kind::kBlockingCollective;
  }
  return kinds;
}

std::vector<HostCall> calls_in_order(const KinetoTrace& trace, const KinetoWindow& window,
                                     const std::vector<KinetoPass>& pass_of_call) {
  const CollectiveKinds collectives = kinds_of_collectives(trace);
  std::vector<HostCall> calls;
  for (std::size_t i = 0; i < trace.calls.size(); ++i) {
    const KinetoCall& call = trace.calls[i];
    const std::string_view name = trace.name(call.name);
    if (!window.contains(call.start_ns)) continue;
    if (is_launch(name)) {
      const auto collective = collectives.find(call.correlation);
      calls.push_back(
          {call.start_ns, call.end_ns, pass_of_call[i],
           collective == collectives.end() ? HostCall::Kind::kKernel : collective->second});
    } else if (is_synchronization(name)) {
      calls.push_back({call.start_ns, call.end_ns, KinetoPass::kForward, HostCall::Kind::kWait});
    }
  }
  std::sort(calls.begin(), calls.end(), [](const HostCall& a, const HostCall& b) {
    return std::pair(a.start_ns, a.end_ns) < std::pair(b.start_ns, b.end_ns);
  });
  return calls;
}

/// Launches that take much longer than usual wait for a free entry in the queue.
std::int64_t longest_launch(const std::vector<HostCall>& calls) {
  constexpr std::int64_t kAtLeastNs = 100'000;
  constexpr double kTimesMedian = 10;
  std::vector<std::int64_t> durations;
  for (const HostCall& call : calls)
    if (call.kind != HostCall::Kind::kWait) durations.push_back(call.end_ns - call.start_ns);
  const double median = median_seconds(durations) / kHostSecondsPerNs;
  return std::max(kAtLeastNs, static_cast<std::int64_t>(kTimesMedian * median));
}

}  // namespace

KinetoHost measure_host(const KinetoTrace& trace, const KinetoWindow& window,
                        const std::vector<KinetoPass>& pass_of_call) {
  const std::vector<HostCall> calls = calls_in_order(trace, window, pass_of_call);
  const std::int64_t longest = longest_launch(calls);
  KinetoHost host;
  std::vector<std::int64_t> kernels, collectives;
  std::int64_t last_ns = window.start_ns, waited_ns = 0;
  std::size_t steps = 0;  // that have begun
  for (const HostCall& call : calls) {
    const std::int64_t duration = call.end_ns - call.start_ns;
    const bool waits = call.kind == HostCall::Kind::kWait;
    if (waits || duration > longest) waited_ns += duration;
    if (waits) continue;
    const std::int64_t interval = std::max<std::int64_t>(0, call.end_ns - last_ns - waited_ns);
    last_ns = std::max(last_ns, call.end_ns);
    waited_ns = 0;
    if (steps < window.starts_ns.size() && call.start_ns >= window.starts_ns[steps]) {
      while (steps < window.starts_ns.size() && call.start_ns >= window.starts_ns[steps]) ++steps;
      host.between_steps += static_cast<double>(interval) * kHostSecondsPerNs;
      continue;
    }
    if (call.kind == HostCall::Kind::kBlockingCollective) {
      host.collectives += static_cast<double>(interval) * kHostSecondsPerNs;
      ++host.collective_launches;
      collectives.push_back(interval);
      continue;
    }
    const auto pass = static_cast<std::size_t>(call.pass);
    host.passes[pass] += static_cast<double>(interval) * kHostSecondsPerNs;
    ++host.launches[pass];
    if (call.pass != KinetoPass::kUpdate && call.kind == HostCall::Kind::kKernel)
      kernels.push_back(interval);
  }
  host.per_kernel = median_seconds(kernels);
  host.per_collective = median_seconds(collectives);
  return host;
}

KinetoIdle measure_idle(const KinetoTrace& trace, const KinetoWindow& window) {
  std::unordered_map<std::int64_t, std::int64_t> launched;  // correlation → end of the launch
  for (const KinetoCall& call : trace.calls)
    if (call.correlation >= 0) launched.try_emplace(call.correlation, call.end_ns);
  KinetoIdle idle;
  std::int64_t until = window.start_ns;
  for (const KinetoGpuWork& work : trace.gpu) {
    if (work.start_ns < window.start_ns || work.start_ns >= window.end_ns) continue;
    if (work.start_ns > until) {
      const auto launch = launched.find(work.correlation);
      const bool is_late = launch != launched.end() && launch->second > until;
      (is_late ? idle.for_host : idle.other) +=
          static_cast<double>(work.start_ns - until) * kHostSecondsPerNs;
    }
    const std::int64_t begin = std::max(until, work.start_ns);
    if (work.end_ns > begin)
      idle.busy += static_cast<double>(work.end_ns - begin) * kHostSecondsPerNs;
    until = std::max(until, work.end_ns);
  }
  if (window.end_ns > until)
    idle.other += static_cast<double>(window.end_ns - until) * kHostSecondsPerNs;
  return idle;
}

}  // namespace meshwright
