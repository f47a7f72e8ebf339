#include "simulator/kernel_time.hpp"

#include <algorithm>
#include <cmath>

#include "core/check.hpp"

namespace meshwright {
namespace {

constexpr double kTileEdge = 20.0;         // elements; fitted to the A100 sweep of LLMCompass
constexpr std::int64_t kLeastTile = 64;    // rows or columns
constexpr std::int64_t kDepthStep = 32;    // elements of k that a tile processes at a time
constexpr std::int64_t kQueryBlock = 128;  // queries of one thread block of fused attention

FlopsPerSecond peak_of(const DeviceModel& device, Dtype dtype) {
  const std::optional<FlopsPerSecond>& peak = device.peak[static_cast<std::size_t>(dtype)];
  MW_CHECK(peak.has_value());
  return *peak;
}

Seconds stream_time(Bytes traffic, int launches, const DeviceModel& device) {
  const MemoryEfficiency& memory = device.memory_efficiency;
  const BytesPerSecond rate = memory.max_efficiency * device.memory_bandwidth;
  const auto ramp = Bytes(launches * memory.half_speed_bytes.value);
  return (traffic + ramp) / rate;
}

Seconds launch_time(const Kernel& kernel, const DeviceModel& device) {
  return static_cast<double>(kernel.launches) * device.launch_overhead;
}

struct Tile {
  std::int64_t m = 128, n = 256;
};
double edge_factor(Tile tile) {
  return 1 + kTileEdge * (1.0 / static_cast<double>(tile.m) + 1.0 / static_cast<double>(tile.n));
}

Seconds tiled_time(const Kernel& kernel, Tile tile, const DeviceModel& device) {
  const std::int64_t tiles =
      kernel.batch * divide_up(kernel.m, tile.m) * divide_up(kernel.n, tile.n);
  const std::int64_t waves = divide_up(tiles, device.multiprocessors);
  const std::int64_t depth = divide_up(kernel.k, kDepthStep) * kDepthStep;
  const Flops work(2.0 * static_cast<double>(tile.m * tile.n) * static_cast<double>(depth));
  const double share = device.gemm.max_efficiency / device.multiprocessors;
  const Tile own = {device.gemm.tile_m, device.gemm.tile_n};
  const Seconds one =
      work / (share * peak_of(device, kernel.dtype)) * (edge_factor(tile) / edge_factor(own));
  return static_cast<double>(waves) * one;
}

Seconds gemm_time(const Kernel& kernel, const DeviceModel& device) {
  Tile tile = {device.gemm.tile_m, device.gemm.tile_n};
  Seconds compute = tiled_time(kernel, tile, device);
  while (tile.m > kLeastTile || tile.n > kLeastTile) {
    (tile.m > tile.n ? tile.m : tile.n) /= 2;
    compute = std::min(compute, tiled_time(kernel, tile, device));
  }
  const Seconds memory = stream_time(kernel.memory_traffic, 0, device);
  return launch_time(kernel, device) + device.gemm.ramp + std::max(compute, memory);
}

Seconds attention_time(const Kernel& kernel, const DeviceModel& device) {
  const double limit =
      kernel.phase == Phase::kForward ? device.attention.forward : device.attention.backward;
  const std::int64_t blocks = kernel.batch * divide_up(kernel.m, kQueryBlock);
  const double filled =
      std::min(1.0, static_cast<double>(blocks) / static_cast<double>(device.multiprocessors));
  const std::int64_t head = kernel.k + kernel.value_size;
  const std::int64_t padded =
      kDepthStep * (divide_up(kernel.k, kDepthStep) + divide_up(kernel.value_size, kDepthStep));
  double waste = static_cast<double>(padded) / static_cast<double>(head);
  if (kernel.causal)
    waste *= 1.0 + static_cast<double>(kQueryBlock) / static_cast<double>(kernel.n);
  const Seconds compute = kernel.flops * waste / (limit * filled * peak_of(device, kernel.dtype));
  const Seconds memory = stream_time(kernel.memory_traffic, 0, device);
  return launch_time(kernel, device) + std::max(compute, memory);
}

}  // namespace

Kernel piece_of(const Kernel& kernel) {
  Kernel piece = kernel;
  piece.pieces = 1;
  if (kernel.kind == KernelKind::kGemm || kernel.kind == KernelKind::kGroupedGemm)
    piece.m = divide_up(kernel.m, kernel.pieces);
  piece.flops = kernel.flops * (1.0 / kernel.pieces);
  piece.memory_traffic = Bytes(divide_up(kernel.memory_traffic.value, kernel.pieces));
  return piece;
}

Seconds kernel_time(const Kernel& kernel, const DeviceModel& device) {
  if (kernel.pieces > 1)
    return static_cast<double>(kernel.pieces) * kernel_time(piece_of(kernel), device);
  switch (kernel.kind) {
    case KernelKind::kGemm:
    case KernelKind::kGroupedGemm:
      return gemm_time(kernel, device);
    case KernelKind::kAttention:
      return attention_time(kernel, device);
    case KernelKind::kMemoryBound:
    case KernelKind::kOptimizer:
      return launch_time(kernel, device) +
             stream_time(kernel.memory_traffic, kernel.launches, device);
  }
  return {};
}

}  // namespace meshwright
