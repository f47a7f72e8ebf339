/// Measured times of single kernels, as CSV: the input of `meshwright fit`.
///
/// One header line, then one row per kernel; fields may be quoted, columns come in any order, and
/// unknown columns are ignored. Required: op, dtype, time_us, and the sizes that the op needs:
///   gemm, batched_gemm        m, n, k; batch (default 1): batch x ([m, k] · [k, n])
///   grouped_gemm              m per expert, n, k, experts
///   attention_forward, attention_backward, attention_forward_backward
///                             batch, heads, head_dim, seq_q, seq_kv, causal (0 or 1); kv_heads
///   rope                      tokens, heads, kv_heads, head_dim
///   cross_entropy             tokens, n (vocabulary)
///   others                    tokens, hidden: norm, add_norm, activation, gated_activation, add,
///                             mul, softmax, embedding, cast (to 8 bits); plus _backward
/// dtype: fp32, tf32, bf16, fp16, fp8, fp8_block, mxfp8, nvfp4.
/// Optional: device, software, note, and how the kernel was measured:
///   method   burst      a few calls after a pause, replayed without gaps (default)
///            sustained  many back-to-back calls: clocks at the power limit
///            kernel     kernel time from a profiler, at full clocks
///            running    kernel time from a profiler, between other kernels of a running model
///            host       host clock around one call: an unknown constant is part of each time
///   source_repo   sets the method of the known public collections if `method` is absent or empty
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/kernel.hpp"
#include "core/base/units.hpp"
#include "core/cluster/device.hpp"
#include "simulator/cost/kernel_time.hpp"

namespace meshwright {

enum class MeasuringMethod : std::uint8_t { kBurst, kSustained, kKernel, kRunning, kHost };
std::string_view name_of(MeasuringMethod method);  ///< "burst", "sustained", …

struct MeasuredKernel {
  int line = 0;                  ///< in the CSV
  std::string device, software;  ///< as written; may be empty
  std::string source;            ///< source_repo, or empty
  std::string family;            ///< for reports: "gemm bf16", "attention forward", "norm"
  std::vector<Kernel> work;      ///< kernels whose times add up to `time`
  /// A stream that `time` contains beside `work`, of unknown cost relative to a plain one: the copy
  /// of keys and values to a cache, the conversion of activations to 8 bits.
  std::optional<Kernel> extra;
  std::string extra_name;  ///< "copy to the cache"
  Seconds time;
  MeasuringMethod method = MeasuringMethod::kBurst;
  bool flash_attention_2 = false;  ///< attention by FlashAttention-2
  std::uint64_t shape_hash = 0;    ///< equal for equal shapes, whatever the source
};

struct MeasuredKernels {
  std::vector<MeasuredKernel> kernels;
  std::vector<std::string> notes;  ///< rows that were skipped, one line per reason
};

/// Reads the CSV. Rows of other devices than `device` are skipped; empty: the only device of the
/// file. InputError names line and column, or lists the devices if there are several.
MeasuredKernels read_measured_kernels(std::string_view text, const std::string& file,
                                      const std::string& device);

}  // namespace meshwright
