#include "cli/calibrate.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/sysinfo.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>

#include "cli/calibration_probes.hpp"
#include "cli/measured_noise.hpp"
#include "cli/run/run_device.hpp"
#include "executor/calibration/measure_device.hpp"
#include "kernels/device/cuda_library.hpp"
#include "kernels/kernel_table.hpp"

namespace meshwright {
namespace {

constexpr Bytes kUnknownMemory(std::int64_t{1} << 30);

using Clock = std::chrono::steady_clock;
/// Two blocks and two micro-batches call most kernels four times per rank. The speed of a machine
/// drifts over seconds: several rounds with few calls each sample it better than one long round.
constexpr int kCountedSteps = 1;
constexpr int kMostRounds = 6;

/// "AMD EPYC 7763 64-Core Processor"
std::string processor_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);)
    if (line.starts_with("model name"))
      if (const std::size_t colon = line.find(": "); colon != std::string::npos)
        return line.substr(colon + 2);
  return "unknown processor";
}

/// Load average of the last minute: other processes competing for the cores.
std::string load_text() {
  std::array<double, 1> load{};
  return ::getloadavg(load.data(), 1) == 1 ? fmt::format("{:.1f}", load[0]) : "unknown";
}

std::map<std::string, std::string> provenance_of(const CalibrationRequest& request,
                                                 const std::string& load_before) {
  std::map<std::string, std::string> provenance;
  provenance["device"] = processor_name();
  provenance["date"] = fmt::format("{:%Y-%m-%d %H:%M} UTC", fmt::gmtime(std::time(nullptr)));
  provenance["program"] = "meshwright " MESHWRIGHT_VERSION;
  provenance["command"] = request.command;
  provenance["kernels"] = kernels_text(request.device);
  provenance["conditions"] = fmt::format(
      "load {} before, {} after; {}", load_before, load_text(),
      request.device == "cuda"
          ? "kernels and copies by events of the GPU, means of kernels; launches by the wall clock"
          : "CPU time of one thread, means; messages by the wall clock");
#if defined(__clang__)
  provenance["compiler"] = "clang " __clang_version__;
#else
  provenance["compiler"] = "gcc " __VERSION__;
#endif
#ifndef NDEBUG
  provenance["compiler"] += ", checks on";
#endif
  return provenance;
}

struct MeasuredKernels {
  std::vector<KernelCurve> curves;
  std::vector<WaitingPasses> passes;
  std::string probes;  ///< their number, as text
};

/// Runs the probes, smallest first, in rounds until the time is up. At least one probe runs.
MeasuredKernels measure_kernels(const CalibrationRequest& request, Clock::time_point end) {
  const std::vector<ProbeShape> probes =
      request.device == "cuda" ? gpu_probes() : calibration_probes();
  const Clock::time_point start = Clock::now();
  MeasuredKernels measured;
  std::vector<TimedKernels> timed;
  std::size_t done = 0;
  const std::size_t most = kMostRounds * probes.size();
  for (; done < most && (done == 0 || Clock::now() < end); ++done) {
    const ProbeShape& shape = probes[done % probes.size()];
    MeasuredProbe probe = run_probe(probe_of(shape), kernels_of_device(request.device),
                                    kCountedSteps, device_of(request.device));
    std::ranges::move(probe.kernels, std::back_inserter(timed));
    if (has_equal_ranks(shape)) measured.passes.push_back({std::move(probe.graph), probe.waiting});
    if (request.progress)
      request.progress(name_of(shape), std::chrono::duration<double>(Clock::now() - start) /
                                           std::chrono::duration<double>(end - start));
  }
  measured.probes =
      fmt::format("{} of {} probes, {} in all", std::min(done, probes.size()), probes.size(), done);
  measured.curves = kernel_curves(timed);
  return measured;
}

/// Ranks share the GPU one kernel at a time: by the virtual clock each has it for itself. With
/// several GPUs, messages are copies between two of them.
void measure_gpus(Calibration& calibration, MeasuredMachine& machine) {
  const CudaExports& cuda = *cuda_library().exports;
  const DeviceDescription described = cuda.device.describe(0);
  machine.processor = described.name;
  machine.memory = described.memory;
  machine.gpu = measure_gpu(cuda.kernels, cuda.device);
  std::vector<CurvePoint> messages = measure_device_messages(cuda.device);
  const MessageFigures figures = figures_of(messages);
  machine.message_latency = figures.latency;
  machine.message_bandwidth = figures.bandwidth;
  if (machine.gpu->count > 1)
    calibration.collectives.push_back({.kind = CollectiveKind::kBroadcast,
                                       .ranks = 2,
                                       .points = std::move(messages),
                                       .source = "copies between two GPUs by events, medians"});
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
}

}  // namespace

std::optional<Bytes> machine_memory() {
  struct sysinfo info {};
  if (::sysinfo(&info) != 0) return std::nullopt;
  return Bytes(static_cast<std::int64_t>(info.totalram) * static_cast<std::int64_t>(info.mem_unit));
}

Calibration calibrate(const CalibrationRequest& request) {
  const Clock::time_point start = Clock::now();
  const std::string load_before = load_text();
  Calibration calibration;
  MeasuredMachine machine;
  machine.processor = processor_name();
  machine.cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  machine.memory = machine_memory().value_or(kUnknownMemory);
  if (request.device == "cuda") {
    static_cast<void>(kernels_of_device(request.device));  // throws if CUDA cannot be used
    measure_gpus(calibration, machine);
    if (request.progress) request.progress("launches and copies", 0);
  } else {
    measure_host(request, calibration, machine);
  }
  MeasuredKernels measured = measure_kernels(request, start + request.budget);
  calibration.kernels = std::move(measured.curves);
  set_rates(calibration.kernels, machine);
  if (machine.gpu) machine.memory_bandwidth = machine.gpu->memory;  // the probes fit in caches
  calibration.machine = machine;
  if (!machine.gpu) calibration.machine->noise = noise_of(calibration, measured.passes);
  calibration.provenance = provenance_of(request, load_before);
  calibration.provenance["probes"] = measured.probes;
  return calibration;
}

}  // namespace meshwright
