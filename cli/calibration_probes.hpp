/// Models whose layers have the shapes that ranks of small jobs see: what `calibrate` trains
/// for a few steps to time kernels.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "executor/measure_kernels.hpp"

namespace meshwright {

enum class ProbeKind : std::uint8_t {
  kGpt,      ///< layer norm, biases, GELU, tied table
  kLlama,    ///< RMS norm, rotary positions, shared key heads, SwiGLU
  kMixture,  ///< experts
};

/// Layers cut over `cut` tensor ranks, or their experts over as many expert ranks, for `sequences`
/// of `length` tokens in a micro-batch. Ranks that wait for each other find their caches as ranks
/// of jobs do.
struct ProbeShape {
  ProbeKind kind = ProbeKind::kGpt;
  std::int64_t hidden = 128, cut = 1, length = 64, vocabulary = 256;
  int sequences = 1;
  Dtype dtype = Dtype::kFp32;
};
/// Whether its ranks wait in their passes for ranks that do the same. What experts have to do
/// differs.
inline bool has_equal_ranks(const ProbeShape& shape) {
  return shape.cut > 1 && shape.kind != ProbeKind::kMixture;
}
std::string name_of(const ProbeShape& shape);  ///< "gpt hidden 128 / 2, 1 x 64 tokens, fp32"
KernelProbe probe_of(const ProbeShape& shape);

/// What matters most first: whoever runs out of time has measured a bit of everything.
std::vector<ProbeShape> calibration_probes();
/// The same for a GPU, which small layers leave idle: layers and batches of models that are worth
/// one.
std::vector<ProbeShape> gpu_probes();

}  // namespace meshwright
