/// Reference systems for tests; rates from the vendors' datasheets.
#pragma once

#include "core/cluster/cluster.hpp"

namespace meshwright::testing {

struct ReferenceSystem {
  DeviceModel device;
  NodeModel node;
  Fabric fabric;
};

inline DeviceModel reference_a100() {
  DeviceModel d;
  d.name = "A100-SXM4-80GB";
  d.memory = Bytes(80LL << 30);
  d.peak[static_cast<std::size_t>(Dtype::kBf16)] = FlopsPerSecond(312e12);
  d.peak[static_cast<std::size_t>(Dtype::kFp16)] = FlopsPerSecond(312e12);
  d.memory_bandwidth = BytesPerSecond(2.039e12);
  d.multiprocessors = 108;
  d.compute_capability = 80;
  // One tile size, and nothing but tiles, waves and memory traffic.
  d.gemm.max_efficiency = 0.8;
  d.gemm.tile_m = d.gemm.tile_n = 64;
  d.gemm.tile_edge = d.gemm.depth_overhead = d.gemm.exposed_write = 0;
  d.gemm.memory_share = 0.91;
  d.attention.forward = {.head_128 = 0.5, .half_length_causal = 0, .half_length_full = 0};
  d.attention.backward = {.head_128 = 0.4, .half_length_causal = 0, .half_length_full = 0};
  d.memory_efficiency = {.max_efficiency = 0.91, .half_speed_bytes = Bytes(0)};
  return d;
}

inline ReferenceSystem reference_system(int compute_capability, double local_gbps, int ports,
                                        double port_gbps, CpuVendor cpu) {
  ReferenceSystem s;
  s.device = reference_a100();
  s.device.compute_capability = compute_capability;
  s.node.device = "device";
  s.node.device_count = 8;
  s.node.local = {.kind = LocalNetworkKind::kNvSwitch,
                  .bandwidth = BytesPerSecond(local_gbps * 1e9),
                  .latency = Seconds(2e-6),
                  .in_network_reduction = compute_capability >= 90};
  s.node.ports = ports;
  s.node.port_bandwidth = BytesPerSecond(port_gbps * 1e9);
  s.node.cpu = cpu;
  s.fabric.latency = Seconds(5e-6);
  return s;
}
inline ReferenceSystem v100_switch() {
  return reference_system(70, 150, 4, 12.5, CpuVendor::kIntel);
}
inline ReferenceSystem v100_mesh() {
  ReferenceSystem s = v100_switch();
  s.node.local.kind = LocalNetworkKind::kNvLinkMesh;
  return s;
}
inline ReferenceSystem dgx_a100() { return reference_system(80, 300, 8, 25, CpuVendor::kAmd); }
inline ReferenceSystem p4de() { return reference_system(80, 300, 4, 12.5, CpuVendor::kIntel); }
inline ReferenceSystem dgx_h100() { return reference_system(90, 450, 8, 50, CpuVendor::kIntel); }
inline ReferenceSystem dgx_b200() { return reference_system(100, 900, 8, 50, CpuVendor::kIntel); }

inline Cluster cluster_of(const ReferenceSystem& system, int nodes) {
  Cluster c;
  c.name = "reference";
  c.devices["device"] = system.device;
  c.nodes["node"] = system.node;
  c.groups = {{.node = "node", .count = nodes}};
  c.fabric = system.fabric;
  return c;
}

}  // namespace meshwright::testing
