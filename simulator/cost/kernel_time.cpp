#include "simulator/cost/kernel_time.hpp"

#include <algorithm>
#include <cmath>

#include "core/base/check.hpp"

namespace meshwright {
namespace {

constexpr double kWaveRounding = 0.6;      // fitted to bf16 GEMMs of six devices; see the header
constexpr std::int64_t kLeastTile = 64;    // rows or columns
constexpr std::int64_t kDepthStep = 32;    // elements of k that a tile processes at a time
constexpr std::int64_t kQueryBlock = 128;  // queries of one thread block of fused attention

FlopsPerSecond required_peak(const DeviceModel& device, ProductFormat format) {
  const std::optional<FlopsPerSecond> peak = peak_of(device, format);
  MW_CHECK(peak.has_value());
  return *peak;
}

Seconds launch_time(const Kernel& kernel, const DeviceModel& device) {
  return static_cast<double>(kernel.launches) * device.launch_overhead;
}

/// Arithmetic and memory traffic proceed at the same time and disturb each other where they take
/// equally long: the cubic mean fits better than the larger of both.
Seconds overlapped(Seconds product, Seconds memory) {
  return Seconds(std::cbrt(product.value * product.value * product.value +
                           memory.value * memory.value * memory.value));
}

/// Waves that `blocks` equal blocks take; at least one.
double waves_of(std::int64_t blocks, const DeviceModel& device) {
  const double full = static_cast<double>(blocks) / device.multiprocessors;
  return kWaveRounding * std::ceil(full) + (1 - kWaveRounding) * std::max(1.0, full);
}

struct Tile {
  std::int64_t m = 256, n = 256;
};
double edge_factor(Tile tile, double edge) {
  return 1 + edge * (1.0 / static_cast<double>(tile.m) + 1.0 / static_cast<double>(tile.n));
}

/// FLOPs at full rate that the product is worth in tiles of one size, with everything that a
/// multiprocessor waits for.
double tiled_work(const Kernel& kernel, Tile tile, const DeviceModel& device) {
  const GemmEfficiency& gemm = device.gemm;
  const std::int64_t tiles =
      kernel.batch * divide_up(kernel.m, tile.m) * divide_up(kernel.n, tile.n);
  const double depth =
      static_cast<double>(divide_up(kernel.k, kDepthStep) * kDepthStep) + gemm.depth_overhead;
  const double edge =
      edge_factor(tile, gemm.tile_edge) / edge_factor({gemm.tile_m, gemm.tile_n}, gemm.tile_edge);
  return waves_of(tiles, device) * device.multiprocessors * 2.0 *
         static_cast<double>(tile.m * tile.n) * depth * edge;
}

Flops least_tiled_work(const Kernel& kernel, const DeviceModel& device) {
  double least = tiled_work(kernel, {device.gemm.tile_m, device.gemm.tile_n}, device);
  for (std::int64_t m = device.gemm.tile_m;; m /= 2) {
    for (std::int64_t n = device.gemm.tile_n;; n /= 2) {
      least = std::min(least, tiled_work(kernel, {m, n}, device));
      if (n / 2 < kLeastTile) break;
    }
    if (m / 2 < kLeastTile) break;
  }
  return Flops(least);
}

/// Bytes that a product writes, plus half of the accumulator that it reads.
Bytes result_bytes(const Kernel& kernel, ProductFormat format) {
  const bool is_wide = format == ProductFormat::kFp32 || format == ProductFormat::kTf32;
  std::int64_t element = is_wide ? kFloat32Bytes : bytes_per_element(Dtype::kBf16);
  if (kernel.phase == Phase::kBackwardWeight) element = kFloat32Bytes + kFloat32Bytes / 2;
  return Bytes(kernel.batch * kernel.m * kernel.n * element);
}

Seconds gemm_time(const Kernel& kernel, const DeviceModel& device, PowerState power) {
  const GemmEfficiency& gemm = device.gemm;
  const ProductFormat format = kernel.format.value_or(product_format_of(kernel.dtype));
  double share = product_share(device, kernel.flops, format, power);
  if (kernel.kind == KernelKind::kGroupedGemm && kernel.batch > 1) share *= gemm.grouped_share;
  const BytesPerSecond rate = gemm.memory_share * device.memory_bandwidth;
  const Seconds product =
      least_tiled_work(kernel, device) / (share * required_peak(device, format));
  return launch_time(kernel, device) + gemm.ramp +
         overlapped(product, kernel.memory_traffic / rate) +
         gemm.exposed_write * (result_bytes(kernel, format) / rate);
}

/// Linear in the logarithm of the head size between 64, 128 and 256.
double long_sequence_share(const AttentionPassEfficiency& pass, double head_size) {
  const double doublings = std::clamp(std::log2(head_size / 128), -1.0, 1.0);
  const double end = doublings < 0 ? pass.head_64 : pass.head_256;
  return pass.head_128 + std::abs(doublings) * (end - pass.head_128);
}

double attention_share(const Kernel& kernel, const AttentionPassEfficiency& pass) {
  const double head = 0.5 * static_cast<double>(kernel.k + kernel.value_size);
  const double half_length = kernel.causal ? pass.half_length_causal : pass.half_length_full;
  return long_sequence_share(pass, head) / (1 + half_length / static_cast<double>(kernel.n));
}

/// Arithmetic performed over arithmetic needed: padded heads, blocks on the diagonal, idle
/// multiprocessors in the last wave.
double attention_waste(const Kernel& kernel, const DeviceModel& device) {
  const std::int64_t blocks = kernel.batch * divide_up(kernel.m, kQueryBlock);
  const std::int64_t padded =
      kDepthStep * (divide_up(kernel.k, kDepthStep) + divide_up(kernel.value_size, kDepthStep));
  double waste = static_cast<double>(padded) / static_cast<double>(kernel.k + kernel.value_size);
  if (kernel.causal)
    waste *= 1.0 + static_cast<double>(kQueryBlock) / static_cast<double>(kernel.n);
  return waste * waves_of(blocks, device) * device.multiprocessors / static_cast<double>(blocks);
}

/// Speed relative to FlashAttention-2, which is twice as fast as FlashAttention, and 1.3 to 1.5
/// times (forward) and twice (backward) as fast as Triton's kernels (Dao, arXiv 2307.08691,
/// section 4.1).
double speed_of(AttentionLibrary library, bool forward) {
  switch (library) {
    case AttentionLibrary::kNewest:
    case AttentionLibrary::kFlashAttention2:
      break;
    case AttentionLibrary::kTriton:
      return forward ? 1 / 1.4 : 0.5;
    case AttentionLibrary::kFlashAttention1:
      return 0.5;
  }
  return 1;
}

Seconds attention_time(const Kernel& kernel, const DeviceModel& device,
                       const KernelConditions& conditions) {
  const bool old =
      conditions.attention != AttentionLibrary::kNewest && device.flash_attention_2.has_value();
  const AttentionEfficiency& attention = old ? *device.flash_attention_2 : device.attention;
  const bool forward = kernel.phase == Phase::kForward;
  const AttentionPassEfficiency& pass = forward ? attention.forward : attention.backward;
  double share = attention_share(kernel, pass);
  if (kernel.dtype == Dtype::kFp8) share *= pass.fp8_share;
  share *= speed_of(conditions.attention, forward);
  if (kernel.dropout) share *= pass.dropout_share;
  // Attention was measured at full clocks; unless known, the power limit slows it like products.
  if (conditions.power == PowerState::kSustained)
    share *= attention.sustained_share
                 ? *attention.sustained_share * power_limited_clock(device)
                 : product_share(device, {}, ProductFormat::kBf16, PowerState::kSustained) /
                       device.gemm.max_efficiency;
  const FlopsPerSecond peak = required_peak(device, product_format_of(kernel.dtype));
  const Seconds product = kernel.flops * attention_waste(kernel, device) / (share * peak);
  const BytesPerSecond rate = device.memory_efficiency.max_efficiency * device.memory_bandwidth;
  return launch_time(kernel, device) + attention.ramp +
         overlapped(product, kernel.memory_traffic / rate);
}

Seconds stream_time(const Kernel& kernel, const DeviceModel& device) {
  const StreamFamily family = stream_family_of(kernel.routine, kernel.phase);
  const MemoryEfficiency& memory =
      device.streams[static_cast<std::size_t>(family)].value_or(device.memory_efficiency);
  const BytesPerSecond rate = memory.max_efficiency * device.memory_bandwidth;
  const Bytes ramp(kernel.launches * memory.half_speed_bytes.value);
  return launch_time(kernel, device) + (kernel.memory_traffic + ramp) / rate;
}

}  // namespace

double product_share(const DeviceModel& device, Flops work, ProductFormat format,
                     PowerState power) {
  const GemmEfficiency& gemm = device.gemm;
  const auto index = static_cast<std::size_t>(format);
  const double most = gemm.max_efficiency, least = gemm.long_efficiency.value_or(most);
  const double of_long = gemm.format_long_share[index];
  if (power == PowerState::kSustained)
    return of_long * gemm.sustained_efficiency.value_or(least) * power_limited_clock(device);
  const Seconds ideal = work / required_peak(device, format);
  const double top = gemm.format_share[index] * most, bottom = of_long * least;
  return bottom + (top - bottom) / (1 + ratio(ideal, gemm.droop_time));
}

Kernel piece_of(const Kernel& kernel) {
  Kernel piece = kernel;
  piece.pieces = 1;
  if (kernel.kind == KernelKind::kGemm || kernel.kind == KernelKind::kGroupedGemm)
    piece.m = divide_up(kernel.m, kernel.pieces);
  piece.flops = kernel.flops * (1.0 / kernel.pieces);
  piece.memory_traffic = Bytes(divide_up(kernel.memory_traffic.value, kernel.pieces));
  return piece;
}

Seconds kernel_time(const Kernel& kernel, const DeviceModel& device,
                    const KernelConditions& conditions) {
  if (kernel.pieces > 1)
    return static_cast<double>(kernel.pieces) * kernel_time(piece_of(kernel), device, conditions);
  switch (kernel.kind) {
    case KernelKind::kGemm:
    case KernelKind::kGroupedGemm:
      return gemm_time(kernel, device, conditions.power);
    case KernelKind::kAttention:
      return attention_time(kernel, device, conditions);
    case KernelKind::kMemoryBound:
    case KernelKind::kOptimizer:
      return stream_time(kernel, device);
  }
  return {};
}

}  // namespace meshwright
