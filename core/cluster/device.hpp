/// A device: its datasheet and the parameters of its kernel models. simulator/cost/kernel_time.hpp
/// prices kernels from it, `meshwright fit` finds the parameters from measured kernels, and
/// models/devices/*.toml holds one file per device.
///
/// All parameters have defaults that are typical of current GPUs, so that a datasheet alone gives a
/// usable device.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/dtype.hpp"
#include "core/base/error.hpp"
#include "core/base/kernel.hpp"
#include "core/base/units.hpp"
#include "core/cluster/collective_parameters.hpp"

namespace meshwright {

/// Rate of a GEMM, batch x ([m, k] · [k, n]):
///   time = launch + ramp + (product^3 + memory^3)^(1/3) + exposed_write * 2 bytes m n / memory
///   rate
/// where `product` counts tiles and waves at `peak * share(flops)`, `memory` is the traffic at
/// memory_share of the bandwidth, and
///   share = long + (max - long) / (1 + flops / (peak * droop_time))      in a burst
///   share = sustained                                                    in training
/// with all three reduced for formats of 8 bits and less.
/// A burst of a few kernels starts at full clocks, and the power limit lowers them within
/// milliseconds: large products in a burst are slower than medium ones.
struct GemmEfficiency {
  double max_efficiency = 0.8;            ///< fraction of the peak that a burst of GEMMs reaches
  std::optional<double> long_efficiency;  ///< of a very long GEMM in a burst; absent: max
  Seconds droop_time = Seconds(1e-3);     ///< GEMM time at which half of max - long is lost
  std::optional<double> sustained_efficiency;  ///< in continuous training; absent: long
  int tile_m = 256, tile_n = 256;  ///< largest tile; smaller ones are its halvings down to 64
  /// Slowdown of small tiles, elements: a tile of a x b takes a b (1 + edge (1/a + 1/b)).
  double tile_edge = 5;
  double depth_overhead = 32;   ///< prologue and epilogue of a tile, in elements of k
  double exposed_write = 0.3;   ///< fraction of the result written after the product, not during it
  double memory_share = 0.85;   ///< fraction of the memory bandwidth that operands are read at
  Seconds ramp;                 ///< fill and drain, in addition to the launch overhead
  double grouped_share = 0.85;  ///< two or more products at once: fraction of the share of one
  /// Share of the format's own peak as a fraction of that of bf16, by ProductFormat: of max, and of
  /// long and sustained. The arithmetic of 8-bit formats needs more power per second.
  std::array<double, kProductFormatCount> format_share = {1, 1, 1, 1, 0.9, 0.85, 0.85, 0.75};
  std::array<double, kProductFormatCount> format_long_share = {1, 1, 1, 1, 0.75, 0.8, 0.8, 0.7};
  friend bool operator==(const GemmEfficiency&, const GemmEfficiency&) = default;
};

/// A memory-bound kernel: launch + (bytes + half_speed_bytes) / (bandwidth * max_efficiency).
struct MemoryEfficiency {
  double max_efficiency = 0.85;  ///< fraction of the datasheet bandwidth reached by large streams
  Bytes half_speed_bytes;        ///< traffic at which half of that rate is reached
  friend bool operator==(const MemoryEfficiency&, const MemoryEfficiency&) = default;
};

/// Memory-bound kernels that reach different fractions of the bandwidth.
enum class StreamFamily : std::uint8_t {
  kNorm,
  kNormBackward,
  kActivation,  ///< element by element: GELU, squared ReLU, both passes
  kGatedActivation,
  kGatedActivationBackward,
  kAdd,
  kRotary,
  kSoftmax,
  kCrossEntropy,
  kEmbedding,
  kPermutation,  ///< dispatch and combine of experts
  kCast,         ///< to 8 bits
  kReduction,    ///< bias gradients, routing
  kOptimizer
};
inline constexpr int kStreamFamilyCount = 14;
std::string_view name_of(StreamFamily family);  ///< "norm", "norm-backward", …
/// The family of a memory-bound or optimizer kernel.
StreamFamily stream_family_of(Routine routine, Phase phase);

/// One pass of fused (flash) attention over keys of length T:
///   efficiency = e(head size) / (1 + half_length / T)
/// e is interpolated linearly in the logarithm of the head size between 64, 128 and 256.
struct AttentionPassEfficiency {
  double head_128 = 0.6;            ///< fraction of the peak, long sequences, head size 128
  double head_64 = 0.5;             ///< the same, head size 64 and below
  double head_256 = 0.6;            ///< the same, head size 256 and above
  double half_length_causal = 300;  ///< keys at which half of it is reached
  double half_length_full = 100;    ///< the same without a causal mask
  double fp8_share = 0.75;          ///< fp8: fraction of the above at the fp8 peak
  /// With dropout: fraction of the above. Defaults: GB200, Dao-AILab/flash-attention#2597.
  double dropout_share = 0.8;
  friend bool operator==(const AttentionPassEfficiency&, const AttentionPassEfficiency&) = default;
};
struct AttentionEfficiency {
  AttentionPassEfficiency forward;
  AttentionPassEfficiency backward = {.head_128 = 0.5,
                                      .head_64 = 0.4,
                                      .head_256 = 0.5,
                                      .half_length_causal = 500,
                                      .half_length_full = 150,
                                      .fp8_share = 0.6,
                                      .dropout_share = 0.65};
  Seconds ramp;  ///< in addition to the launch overhead
  /// Of the efficiency at full clocks, in continuous training. Absent: as products.
  std::optional<double> sustained_share = {};
  friend bool operator==(const AttentionEfficiency&, const AttentionEfficiency&) = default;
};

/// Whose kernels run on a device; this decides which tensors are held between and during kernels.
enum class KernelLibrary : std::uint8_t {
  kFrameworks,  ///< PyTorch and Megatron-LM: published formulas
                ///< (core/operators/saved_activations.hpp)
  kOwn          ///< Meshwright's executor: buffer by buffer (core/operators/buffers.hpp)
};

struct DeviceModel {
  std::string name;  ///< "A100-SXM4-80GB"
  Bytes memory;
  Bytes reserved_memory;  ///< driver context, communication library, allocator slack
  std::array<std::optional<FlopsPerSecond>, kDtypeCount> peak;  ///< dense, indexed by Dtype
  BytesPerSecond memory_bandwidth;
  Seconds launch_overhead;  ///< from the end of a kernel to the start of the next one
  int multiprocessors = 1;
  std::optional<Watts> design_power;      ///< at which the sustained efficiencies were found
  std::optional<Watts> power_limit;       ///< as configured (nvidia-smi -pl); absent: design_power
  std::optional<int> compute_capability;  ///< 80, 90, 100; absent: not an NVIDIA GPU
  GemmEfficiency gemm;
  MemoryEfficiency memory_efficiency;  ///< of families without their own
  std::array<std::optional<MemoryEfficiency>, kStreamFamilyCount> streams;  ///< by StreamFamily
  AttentionEfficiency attention;  ///< the fastest library: cuDNN, FlashAttention-3 or -4
  /// FlashAttention-2 on devices that it was not written for; absent: as `attention`.
  std::optional<AttentionEfficiency> flash_attention_2;
  KernelLibrary kernels = KernelLibrary::kFrameworks;
  std::optional<CollectiveParameters> collectives = {};  ///< absent: NCCL's own estimates
  friend bool operator==(const DeviceModel&, const DeviceModel&) = default;
};

/// Peak rate of products in a format; absent: not supported. fp8 recipes share the fp8 peak.
std::optional<FlopsPerSecond> peak_of(const DeviceModel& device, ProductFormat format);

/// Clock of products and attention in continuous training relative to that at the design power.
/// Where the power limit sets the clock, power is f V^2 with a voltage V proportional to the clock
/// f: the clock goes with the cube root of the limit. Example: 500 W of 700 W give 0.894.
double power_limited_clock(const DeviceModel& device);

/// Reports all problems of a device: sizes and rates that are not positive, shares outside (0, 1].
/// Empty if it is valid. `place` prefixes every diagnostic's `where`: "x.toml: devices.a100".
std::vector<Diagnostic> check_device(const DeviceModel& device, const std::string& place);

}  // namespace meshwright
