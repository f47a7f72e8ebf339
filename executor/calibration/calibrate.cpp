#include "executor/calibration/calibrate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "executor/calibration/host.hpp"
#include "executor/calibration/kernel_curves.hpp"
#include "executor/calibration/measure_device.hpp"
#include "executor/calibration/measure_messages.hpp"

namespace meshwright {
namespace {

constexpr Bytes kUnknownMemory(std::int64_t{1} << 30);
/// Two blocks and two micro-batches call most kernels four times per rank. The speed of a machine
/// drifts over seconds: several rounds with few calls each sample it better than one long round.
constexpr int kCountedSteps = 1;
constexpr std::size_t kMostRounds = 6;

/// Runs the probes in rounds until the time is up.
void measure_probes(const CalibrationRequest& request, std::chrono::steady_clock::time_point end,
                    MeasuredCalibration& measured) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  std::vector<TimedKernels> timed;
  const std::size_t most = kMostRounds * request.probe_count;
  std::size_t& done = measured.probes;
  for (; done < most && (done == 0 || Clock::now() < end); ++done) {
    const KernelProbe probe = request.probe(done % request.probe_count);
    MeasuredProbe result = run_probe(probe, request.kernels, kCountedSteps, request.device);
    std::ranges::move(result.kernels, std::back_inserter(timed));
    if (probe.has_equal_ranks)
      measured.waiting.push_back({std::move(result.graph), result.waiting});
    if (request.progress)
      request.progress(probe.name, std::chrono::duration<double>(Clock::now() - start) /
                                       std::chrono::duration<double>(end - start));
  }
  measured.calibration.kernels = kernel_curves(timed);
}

/// Ranks share the GPU one kernel at a time: by the virtual clock each has it for itself. With
/// several GPUs, messages are copies between two of them.
void measure_gpus(const CalibrationRequest& request, Calibration& calibration,
                  MeasuredMachine& machine) {
  const DeviceDescription described = request.device->describe(0);
  machine.processor = described.name;
  machine.memory = described.memory;
  machine.gpu = measure_gpu(request.kernels, *request.device);
  std::vector<CurvePoint> messages = measure_device_messages(*request.device);
  const MessageFigures figures = figures_of(messages);
  machine.message_latency = figures.latency;
  machine.message_bandwidth = figures.bandwidth;
  if (machine.gpu->count > 1)
    calibration.collectives.push_back({.kind = CollectiveKind::kBroadcast,
                                       .ranks = 2,
                                       .points = std::move(messages),
                                       .source = "copies between two GPUs by events, medians"});
  if (request.progress) request.progress("launches and copies", 0);
}

/// Messages, and collectives of up to as many ranks as the host has cores.
void measure_host(const CalibrationRequest& request, Calibration& calibration,
                  MeasuredMachine& machine) {
  const MessageFigures messages = measure_messages();
  machine.message_latency = messages.latency;
  machine.message_bandwidth = messages.bandwidth;
  if (request.progress) request.progress("messages", 0);
  constexpr int kMostMembers = 16;
  for (int ranks = 2; ranks <= std::min(machine.cores, kMostMembers); ranks *= 2) {
    for (CollectiveCurve& curve : measure_collectives(ranks))
      calibration.collectives.push_back(std::move(curve));
    if (request.progress) request.progress(fmt::format("collectives of {} ranks", ranks), 0);
  }
}

/// The best rate of any GEMM, and the bandwidth of the largest update: small ones fit in caches.
void set_rates(const std::vector<KernelCurve>& curves, MeasuredMachine& machine) {
  Bytes largest;
  for (const KernelCurve& curve : curves)
    for (const KernelPoint& point : curve.points) {
      if (curve.family.kind == KernelKind::kGemm) {
        FlopsPerSecond& peak = machine.peak[curve.family.dtype];
        peak = std::max(peak, point.flops / point.time);
      }
      if (curve.family.routine == Routine::kUpdate && point.memory_traffic > largest) {
        largest = point.memory_traffic;
        machine.memory_bandwidth = point.memory_traffic / point.time;
      }
    }
  if (machine.gpu) machine.memory_bandwidth = machine.gpu->memory;  // the probes fit in caches
}

}  // namespace

MeasuredCalibration measure_calibration(const CalibrationRequest& request) {
  const auto end = std::chrono::steady_clock::now() + request.budget;
  MeasuredCalibration measured;
  MeasuredMachine machine;
  machine.processor = processor_name();
  machine.cores = core_count();
  machine.memory = host_memory().value_or(kUnknownMemory);
  request.device != nullptr ? measure_gpus(request, measured.calibration, machine)
                            : measure_host(request, measured.calibration, machine);
  measure_probes(request, end, measured);
  set_rates(measured.calibration.kernels, machine);
  measured.calibration.machine = std::move(machine);
  return measured;
}

}  // namespace meshwright
