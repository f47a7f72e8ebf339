/// Reads the trace of PyTorch's profiler (Kineto) as measurements: which operator launched which
/// kernel with which inputs, and what the kernel, the launch and the operator took. Fields:
/// github.com/pytorch/kineto, libkineto/src/output_json.cpp, and torch/csrc/profiler. For traces as
/// timelines see trace_events.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/units.hpp"

namespace meshwright {

/// An operator on the CPU (`cpu_op`): "aten::mm", "AddmmBackward0",
/// "autograd::engine::evaluate_function: AddmmBackward0".
struct KinetoOperator {
  std::int64_t start_ns = 0, end_ns = 0;
  std::int64_t external_id = -1;
  std::int64_t sequence = -1;  ///< autograd's: equal for an operator and its backward
  std::uint32_t thread = 0, name = 0;
  std::int32_t inputs = -1;  ///< index in KinetoTrace::inputs
  std::int32_t parent = -1;  ///< innermost operator around it on its thread
  friend bool operator==(const KinetoOperator&, const KinetoOperator&) = default;
};

/// A call of the CUDA runtime or driver: a launch, a copy or a synchronization.
struct KinetoCall {
  std::int64_t start_ns = 0, end_ns = 0;
  std::int64_t correlation = -1;
  std::uint32_t thread = 0, name = 0;
  friend bool operator==(const KinetoCall&, const KinetoCall&) = default;
};

enum class KinetoGpuKind : std::uint8_t { kKernel, kCopy, kFill };
struct KinetoGpuWork {
  std::int64_t start_ns = 0, end_ns = 0;
  std::int64_t correlation = -1, external_id = -1;
  std::uint32_t stream = 0, name = 0;
  std::int32_t collective = -1;  ///< index in KinetoTrace::collectives
  KinetoGpuKind kind = KinetoGpuKind::kKernel;
  friend bool operator==(const KinetoGpuWork&, const KinetoGpuWork&) = default;
};

/// Inputs of an operator as JSON arrays with one entry per argument; empty if not recorded
/// (`record_shapes=False`).
struct KinetoInputs {
  std::string dims, types, strides, values;
  friend auto operator<=>(const KinetoInputs&, const KinetoInputs&) = default;
};

/// The arguments of an NCCL kernel, equal for all calls of one size.
struct KinetoCollective {
  std::string name, dtype;              ///< "allreduce", "BFloat16"
  std::string group, ranks;             ///< its name, and its ranks as text: may be truncated
  std::int64_t sent = 0, received = 0;  ///< elements
  std::int64_t group_size = 0;          ///< 0: not recorded
  friend auto operator<=>(const KinetoCollective&, const KinetoCollective&) = default;
};

/// A `record_function` range that names a step: "ProfilerStep#12", "Optimizer.step#AdamW.step".
struct KinetoRange {
  std::int64_t start_ns = 0, end_ns = 0;
  std::uint32_t name = 0;
  friend bool operator==(const KinetoRange&, const KinetoRange&) = default;
};

struct KinetoTrace {
  std::vector<std::string> names;
  std::vector<KinetoInputs> inputs;
  std::vector<KinetoCollective> collectives;
  std::vector<KinetoOperator> operators;  ///< by thread, then start; parents come first
  std::vector<KinetoCall> calls;          ///< by correlation
  std::vector<KinetoGpuWork> gpu;         ///< by start
  std::vector<KinetoRange> steps;         ///< ProfilerStep#N, by start
  std::vector<KinetoRange> updates;       ///< Optimizer.step#…, by start
  std::string device;                     ///< "NVIDIA H100 80GB HBM3"; empty: not recorded
  int devices = 0;                        ///< GPUs of the node that the process sees
  std::optional<std::int64_t> rank, world_size;
  std::map<std::string, std::vector<std::int64_t>> groups;  ///< process group name → ranks
  std::map<std::string, std::string> versions;              ///< "cuda_driver_version" → "12040"
  std::size_t dropped = 0;                                  ///< malformed events

  std::string_view name(std::uint32_t index) const { return names[index]; }
};

/// Limits beyond which a trace is rejected, or its inputs are treated as not recorded.
inline constexpr std::size_t kMostKinetoEvents = 50'000'000;
inline constexpr std::size_t kLongestKinetoInputs = std::size_t{1} << 20;  ///< bytes, per operator
inline constexpr std::size_t kMostKinetoInputBytes = std::size_t{256} << 20;

/// One pass; needs about 80 bytes per event in addition to the text. Throws InputError with the
/// byte offset of invalid JSON. Malformed events are counted and dropped. `progress` is called with
/// the bytes read every 2^17 events; it may throw.
KinetoTrace read_kineto_trace(std::string_view text, std::string_view where,
                              const std::function<void(std::size_t bytes)>& progress = {});

}  // namespace meshwright
