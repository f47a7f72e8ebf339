/// Time of one kernel on a device, from the parameters in core/cluster/device.hpp.
///
/// GEMM, batch x ([m, k] · [k, n]), for a tile of a x b:
///   tiles   = batch * ceil(m / a) * ceil(n / b)
///   waves   = 0.6 * ceil(tiles / P) + 0.4 * max(1, tiles / P), P multiprocessors: the last wave is
///             partly filled by tiles that start early (measured: 0.4 to 0.7 on A100 to GB200)
///   tile    = 2 a b (k' + depth_overhead) / (peak / P * share) * edge, k' = k rounded up to 32
///   edge    = 1 + c (1 / a + 1 / b) over the same for the device's largest tile: a tile reads
///             a + b elements for a * b multiply-adds, so small tiles wait for them
///   product = waves * tile, minimized over the tile and its halvings, as libraries do
///   memory  = traffic / (bandwidth * memory_share)
///   time    = launch + ramp + (product^3 + memory^3)^(1/3) + exposed_write * result / memory rate
/// with `share` by PowerState, and `grouped_share` of it for grouped GEMMs of two or more products.
/// The result has 2 bytes per element, 4 in fp32 and tf32. Weight gradients are added to fp32
/// values and count 6 bytes: half of the read overlaps (A100 PCIe, m = n = 4096 and more, k =
/// 4096: 1.0 ps per element for 2 bytes, 2.85 ps if added; MooreThreads/SimuMax).
///
/// Memory-bound: launches * launch + (bytes + launches * half_speed_bytes) / (bandwidth *
/// max_efficiency of the family), so that one launch of half_speed_bytes runs at half the
/// bandwidth.
///
/// Fused attention: launch + ramp + (product^3 + memory^3)^(1/3), product = flops * padding *
/// diagonal * rounding / (peak * efficiency); padding = head size rounded up to 32 over head size,
/// diagonal = 1 + 128 / keys if causal (blocks on the diagonal are computed in full), rounding =
/// waves of blocks of 128 queries over blocks / P (blocks as in Dao, arXiv 2307.08691).
///
/// Worked number, A100 (312 TFLOP/s, P = 108, tiles of 64 x 64, share 0.8; edge, overhead, ramp,
/// launch and memory time zero): 8192 x 12288 x 1024 has 128 * 192 = 24576 tiles, 227.556 waves
/// that count as 0.6 * 228 + 0.4 * 227.556 = 227.822; a tile is 8388608 FLOP at 2.31111 TFLOP/s
/// = 3.62969 us; the product takes 826.92 us.
#pragma once

#include "core/base/kernel.hpp"
#include "core/base/units.hpp"
#include "core/cluster/device.hpp"
#include "core/trainer/trainer.hpp"

namespace meshwright {

/// The clocks that products and attention run at.
enum class PowerState : std::uint8_t {
  kBurst,     ///< a few kernels after a pause, as in kernel benchmarks: full clocks
  kSustained  ///< continuous training: clocks that the power limit allows
};
struct KernelConditions {
  PowerState power = PowerState::kSustained;
  AttentionLibrary attention = AttentionLibrary::kNewest;
  friend bool operator==(const KernelConditions&, const KernelConditions&) = default;
};

/// Products and attention require a device peak for the kernel's format (check_plan verifies this).
/// O(1), no allocation.
Seconds kernel_time(const Kernel& kernel, const DeviceModel& device,
                    const KernelConditions& conditions);

/// Fraction of the format's peak that a GEMM of `work` FLOPs runs at.
double product_share(const DeviceModel& device, Flops work, ProductFormat format, PowerState power);

/// One of the equal pieces that the kernel is split into: a GEMM by rows, attention by keys (its
/// queries, which fill the device, are not split).
Kernel piece_of(const Kernel& kernel);

}  // namespace meshwright
