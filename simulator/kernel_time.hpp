/// Time of one kernel on a device: a roofline, the larger of arithmetic and memory time, with the
/// losses of tile quantization, wave quantization and short memory streams.
///
/// GEMM, batch x ([m, k] · [k, n]), for a tile of tm x tn:
///   tiles   = batch * ceil(m / tm) * ceil(n / tn)
///   waves   = ceil(tiles / multiprocessors)
///   tile    = 2 * tm * tn * k' / (peak / multiprocessors * max_efficiency) * edge, k' = k rounded
///             up to 32
///   edge    = 1 + c (1 / tm + 1 / tn) over the same for the device's own tile: a tile reads
///             tm + tn elements for tm * tn multiply-adds, so small tiles wait for them; c = 20
///   time    = launch + ramp + max(waves * tile, traffic / bandwidth)
/// minimized over the device's tile and its halvings down to 64 x 64, as libraries do.
///
/// Memory-bound: launches * launch + (bytes + launches * half_speed_bytes) / (bandwidth *
/// max_efficiency), so that one launch of half_speed_bytes runs at half the bandwidth.
///
/// Fused attention: launch + flops * padding * diagonal / (peak * efficiency * filled), padding =
/// head size rounded up to 32 over head size, diagonal = 1 + 128 / keys if causal (blocks on the
/// diagonal are computed in full), filled = share of the multiprocessors that have a block of 128
/// queries; at least the time of the memory traffic (blocks as in Dao, arXiv 2307.08691).
///
/// Worked number, A100 (312 TFLOP/s, 108 multiprocessors, 0.94, tiles 128 x 256, no launch, no
/// ramp): 1024 x 12288 x 12288 has 8 * 48 = 384 tiles, 4 waves; a tile is 805306368 FLOP at 2.71556
/// TFLOP/s = 296.55 us; 4 waves 1.1862 ms. Measured, launch included: 1.1990 ms
/// (PrincetonUniversity/LLMCompass@2e015fd2ee, ae/figure5/ab/real_hardware/matmul_A100.csv).
#pragma once

#include "core/cluster.hpp"
#include "core/kernel.hpp"
#include "core/units.hpp"

namespace meshwright {

/// Products and attention require a device peak for the kernel's dtype (check_plan verifies this).
/// O(1), no allocation.
Seconds kernel_time(const Kernel& kernel, const DeviceModel& device);

/// One of the equal pieces that the kernel is split into: a GEMM by rows, attention by keys (its
/// queries, which fill the device, are not split).
Kernel piece_of(const Kernel& kernel);

}  // namespace meshwright
