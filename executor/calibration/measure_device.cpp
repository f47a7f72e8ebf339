#include "executor/calibration/measure_device.hpp"

#include <algorithm>
#include <chrono>
#include <functional>

#include "core/base/check.hpp"
#include "core/base/error.hpp"

namespace meshwright {
namespace {

constexpr int kRounds = 7;

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

/// A stream of the selected device with the memory used for measuring.
class Bench {
 public:
  explicit Bench(const DeviceTable& device)
      : device_(device),
        stream_(device.create_stream()),
        first_(device.create_event()),
        last_(device.create_event()) {}
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;
  ~Bench() {
    for (void* memory : on_device_) device_.release(memory, stream_);
    for (void* memory : on_host_) device_.release_host(memory);
    device_.destroy_event(first_);
    device_.destroy_event(last_);
    device_.destroy_stream(stream_);
  }
  void* stream() const { return stream_; }
  void* on_device(Bytes size) {
    return on_device_.emplace_back(allocated_on(device_, size, stream_));
  }
  void* on_host(Bytes size) {
    void* memory = device_.allocate_host(size);
    if (memory == nullptr)
      throw RuntimeFailure(
          {.where = "CUDA", .what = "cannot allocate page-locked host memory", .hint = ""});
    return on_host_.emplace_back(memory);
  }
  /// Measured by events; the first round is a warm-up.
  Seconds time_of(const std::function<void()>& work) const {
    std::vector<double> times;
    for (int round = 0; round <= kRounds; ++round) {
      device_.record(first_, stream_);
      work();
      device_.record(last_, stream_);
      device_.wait_for_event(last_);
      if (round > 0) times.push_back(device_.elapsed(first_, last_).value);
    }
    constexpr double kLeast = 1e-9;
    return Seconds(std::max(median(std::move(times)), kLeast));
  }
  Seconds time_of_copy(void* to, const void* from, Bytes size) const {
    return time_of([&] { device_.copy(to, from, size, stream_); });
  }

 private:
  const DeviceTable& device_;
  void *stream_, *first_, *last_;
  std::vector<void*> on_device_, on_host_;
};

/// Minimum time per kernel on host or device: by the host's clock, from the first launch to the
/// last completion.
Seconds launch_overhead(const KernelTable& kernels, const DeviceTable& device, int launches) {
  Bench bench(device);
  const Vector one{bench.on_device(Bytes(4)), 1, Dtype::kFp32};
  std::vector<double> times;
  for (int round = 0; round <= kRounds; ++round) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < launches; ++i)
      kernels.fill({.stream = bench.stream()}, {.y = one, .value = 1});
    device.wait_for_stream(bench.stream());
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
    if (round > 0) times.push_back(passed.count() / launches);
  }
  return Seconds(median(std::move(times)));
}

}  // namespace

MeasuredGpu measure_gpu(const KernelTable& kernels, const DeviceTable& device,
                        const DeviceSizes& sizes) {
  device.select(0);
  MeasuredGpu gpu;
  gpu.count = device.count();
  gpu.launch_overhead = launch_overhead(kernels, device, sizes.launches);
  Bench bench(device);
  void* one = bench.on_device(sizes.copy);
  void* other = bench.on_device(sizes.copy);
  void* host = bench.on_host(sizes.copy);
  device.fill(one, 1, sizes.copy, bench.stream());
  gpu.to_device = sizes.copy / bench.time_of_copy(one, host, sizes.copy);
  gpu.from_device = sizes.copy / bench.time_of_copy(host, one, sizes.copy);
  // Each byte is read and written.
  gpu.memory = sizes.copy * 2 / bench.time_of_copy(other, one, sizes.copy);
  return gpu;
}

std::vector<CurvePoint> measure_device_messages(const DeviceTable& device,
                                                const DeviceSizes& sizes) {
  const int peer = device.count() > 1 ? 1 : 0;
  device.select(peer);
  Bench there(device);
  void* to = there.on_device(sizes.largest_message);
  device.wait_for_stream(there.stream());
  device.select(0);
  Bench bench(device);
  void* from = bench.on_device(sizes.largest_message);
  device.fill(from, 1, sizes.largest_message, bench.stream());
  constexpr std::int64_t kFirst = 1 << 10, kFactor = 4;
  std::vector<CurvePoint> points;
  for (std::int64_t bytes = kFirst; bytes <= sizes.largest_message.value; bytes *= kFactor)
    points.push_back({Bytes(bytes), bench.time_of_copy(to, from, Bytes(bytes))});
  return level_points(std::move(points)).points;
}

MessageFigures figures_of(const std::vector<CurvePoint>& messages) {
  MW_CHECK(!messages.empty());
  return {.latency = messages.front().time,
          .bandwidth = messages.back().bytes / messages.back().time};
}

}  // namespace meshwright
