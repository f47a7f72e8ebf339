/// Models with layers of the shapes that ranks of small jobs run. `calibrate` trains them for a few
/// steps to time kernels.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "executor/calibration/measure_kernels.hpp"

namespace meshwright {

enum class ProbeKind : std::uint8_t {
  kGpt,      ///< layer norm, biases, GELU, tied table
  kLlama,    ///< RMS norm, rotary positions, shared key heads, SwiGLU
  kMixture,  ///< experts
};

/// Layers sharded over `cut` tensor-parallel ranks, or their experts over as many expert-parallel
/// ranks, with `sequences` of `length` tokens in a micro-batch. The ranks of a probe synchronize
/// like those of a job, so that caches are in the same state.
struct ProbeShape {
  ProbeKind kind = ProbeKind::kGpt;
  std::int64_t hidden = 128, cut = 1, length = 64, vocabulary = 256;
  int sequences = 1;
  Dtype dtype = Dtype::kFp32;
};
std::string name_of(const ProbeShape& shape);  ///< "gpt hidden 128 / 2, 1 x 64 tokens, fp32"
KernelProbe probe_of(const ProbeShape& shape);

/// In order of importance: a calibration that runs out of time has measured the most useful shapes.
std::vector<ProbeShape> calibration_probes();
/// The same for a GPU, with larger layers and batches: small ones do not fill it.
std::vector<ProbeShape> gpu_probes();

}  // namespace meshwright
