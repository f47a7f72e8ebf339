#include "kernels/device/staged_kernels.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/base/check.hpp"
#include "kernels/argument_fields.hpp"
#include "kernels/device/backend_plugin.hpp"
#include "kernels/for_each_kernel.hpp"

namespace meshwright {
namespace {

// ---- memory -------------------------------------------------------------------------------

/// A range of host memory and its copy on the device, with the same address modulo 16, by which
/// kernels choose their accesses.
struct Region {
  std::byte *begin, *end;
  bool may_be_written;
  std::byte *allocation = nullptr, *device = nullptr;
};

/// Visits the arguments twice: first to collect the memory they view, then to replace addresses by
/// those on the device. Views that alias on the host (y = x, or parts of it) alias on the device.
/// Memory of the queue is used in place.
class Stage {
 public:
  explicit Stage(DeviceQueue& queue) : queue_(queue), device_(queue.device()) {}
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;
  ~Stage() {
    for (const Region& r : regions_) device_.release(r.allocation, queue_.stream());
  }

  template <class Arguments>
  Arguments to_device(Arguments arguments) {
    for_each_field(arguments, *this);
    copy_in();
    replaces_ = true;
    for_each_field(arguments, *this);
    return arguments;
  }
  /// Waits only if something is copied back.
  void to_host() {
    for (const Region& r : regions_)
      if (r.may_be_written) queue_.read(r.begin, r.device, Bytes(r.end - r.begin));
  }

  void operator()(ConstMatrix& m) { visit_matrix(m); }
  void operator()(Matrix& m) { visit_matrix(m); }
  void operator()(ConstVector& v) { visit(v.data, v.size * bytes_per_element(v.dtype)); }
  void operator()(Vector& v) { visit(v.data, v.size * bytes_per_element(v.dtype)); }
  void operator()(LogitShard& shard) { visit_matrix(shard.logits); }
  void operator()(float*& one) { visit(one, one == nullptr ? 0 : 4); }
  void operator()(const float*& one) { visit(one, one == nullptr ? 0 : 4); }
  template <class T>
  void operator()(std::span<T>& values) {
    T* data = values.data();
    visit(data, static_cast<std::int64_t>(values.size_bytes()));
    values = {data, values.size()};
  }
  void operator()(std::span<const BucketPart>& parts) {  // a list in host memory
    if (!replaces_) parts_.assign(parts.begin(), parts.end());
    for (BucketPart& part : parts_) (*this)(part.vector);
    parts = parts_;
  }
  /// Numbers, flags and shapes.
  template <class T>
  void operator()(T&) {
    static_assert(!std::is_pointer_v<T>);
  }

 private:
  template <class M>
  void visit_matrix(M& m) {
    const std::int64_t elements = m.empty() ? 0 : (m.rows - 1) * m.stride + m.columns;
    visit(m.data, elements * bytes_per_element(m.dtype));
  }
  template <class Pointer>
  void visit(Pointer& data, std::int64_t bytes) {
    if (bytes == 0) return;
    constexpr bool kWritten = !std::is_const_v<std::remove_pointer_t<Pointer>>;
    if (queue_.use(data, Bytes(bytes), kWritten)) return;
    auto* host = const_cast<std::byte*>(reinterpret_cast<const std::byte*>(data));
    if (!replaces_) return regions_.push_back({host, host + bytes, kWritten});
    for (const Region& r : regions_)
      if (host >= r.begin && host + bytes <= r.end)
        data = reinterpret_cast<Pointer>(r.device + (host - r.begin));
  }

  void copy_in() {
    std::sort(regions_.begin(), regions_.end(),
              [](const Region& a, const Region& b) { return a.begin < b.begin; });
    std::vector<Region> merged;
    for (const Region& r : regions_)
      if (merged.empty() || r.begin >= merged.back().end) {
        merged.push_back(r);
      } else {
        merged.back().end = std::max(merged.back().end, r.end);
        merged.back().may_be_written |= r.may_be_written;
      }
    regions_ = std::move(merged);
    for (Region& r : regions_) {
      const auto shift = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(r.begin) % 16);
      const Bytes size(r.end - r.begin);
      r.allocation = static_cast<std::byte*>(queue_.working_memory(Bytes(size.value + shift)));
      r.device = r.allocation + shift;
      queue_.write(r.device, r.begin, size);
    }
  }

  DeviceQueue& queue_;
  const DeviceTable& device_;
  bool replaces_ = false;
  std::vector<Region> regions_;
  std::vector<BucketPart> parts_;
};

// ---- kernels ------------------------------------------------------------------------------

thread_local Seconds time_of_thread{};

/// Limit for calls that wait for the stream while it is held, as the first launch of a kernel may.
constexpr Seconds kLongestHold(3e-3);

/// Times the work between two events. The stream is held until the host has enqueued all of it: the
/// measured time has no gaps in which the device waits for the host.
class Stopwatch {
 public:
  explicit Stopwatch(DeviceQueue& queue)
      : device_(queue.device()),
        stream_(queue.stream()),
        gate_(queue.gate()),
        first_(device_.create_event()),
        last_(device_.create_event()) {}
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;
  ~Stopwatch() {
    device_.destroy_event(first_);
    device_.destroy_event(last_);
  }
  void start() {
    std::atomic_ref(*gate_).store(0);
    device_.hold(gate_, kLongestHold, stream_);
    device_.record(first_, stream_);
  }
  void stop() {
    device_.record(last_, stream_);
    std::atomic_ref(*gate_).store(1);
  }
  Seconds elapsed() const { return device_.elapsed(first_, last_); }

 private:
  const DeviceTable& device_;
  void* stream_;
  std::uint32_t* gate_;
  void *first_, *last_;
};

/// Working memory of one call, freed in stream order.
class Scratch {
 public:
  Scratch(DeviceQueue& queue, Bytes size)
      : queue_(queue), size_(size), memory_(queue.working_memory(size)) {}
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() { queue_.device().release(memory_, queue_.stream()); }
  /// NaN in fp32 and bf16.
  void fill_with_nan() { queue_.device().fill(memory_, 0xFF, size_, queue_.stream()); }
  Launch launch() const { return {queue_.stream(), memory_, size_}; }

 private:
  const DeviceQueue& queue_;
  Bytes size_;
  void* memory_;
};

/// The arguments were checked when the table was called: kernels of the device are run directly.
template <auto kKernel, class Arguments>
void run_timed(DeviceQueue& queue, const Arguments& on_host) {
  const KernelEntry<Arguments>& kernel = queue.kernels().*kKernel;
  const auto turn = queue.take_turn();
  Stage staged(queue);
  const Arguments arguments = staged.to_device(on_host);
  Stopwatch watch(queue);
  {
    Scratch scratch(queue, kernel.scratch_bytes(arguments));
    if (queue.scratch_contents() == ScratchContents::kNan) scratch.fill_with_nan();
    watch.start();
    kernel.run(scratch.launch(), arguments);
    watch.stop();
  }
  queue.note_work();
  staged.to_host();
  queue.wait();
  time_of_thread = time_of_thread + watch.elapsed();
}

template <auto kKernel, class Arguments>
void run_in_order(DeviceQueue& queue, const Arguments& anywhere) {
  const KernelEntry<Arguments>& kernel = queue.kernels().*kKernel;
  Stage staged(queue);
  queue.note_work();
  const Arguments arguments = staged.to_device(anywhere);
  const Scratch scratch(queue, kernel.scratch_bytes(arguments));
  kernel.run(scratch.launch(), arguments);
  staged.to_host();
}

template <auto kKernel, class Arguments>
void run_queued(const Launch& launch, const Arguments& arguments) {
  MW_CHECK(launch.stream != nullptr);
  auto& queue = *static_cast<DeviceQueue*>(launch.stream);
  if (queue.timing() == QueueTiming::kEachKernel)
    run_timed<kKernel>(queue, arguments);
  else
    run_in_order<kKernel>(queue, arguments);
}

DeviceQueue queue_on(Backend backend) {
  if (!has_device_memory(backend))
    return {kernel_table(backend), host_device(), QueueTiming::kEachKernel, ScratchContents::kNan};
  const PluginExports& plugin = *backend_plugin(backend).exports;
  plugin.device.select(0);
  return {plugin.kernels, plugin.device, QueueTiming::kEachKernel, ScratchContents::kNan};
}

template <Backend kBackend, auto kKernel, class Arguments>
void run_staged(const Launch&, const Arguments& arguments) {
  thread_local DeviceQueue queue = queue_on(kBackend);
  run_timed<kKernel>(queue, arguments);
}

template <Backend kBackend>
KernelTable staged_table() {
  return make_table(kBackend, []<class Row>(Row) {
    using Arguments = typename Row::Arguments;
    return KernelEntry<Arguments>{run_staged<kBackend, Row::entry, Arguments>, nullptr};
  });
}

}  // namespace

KernelTable staged_kernels(Backend backend) {
  constexpr auto kTables = []<std::size_t... kIndex>(std::index_sequence<kIndex...>) {
    return std::array{staged_table<static_cast<Backend>(kIndex)>...};
  }
  (std::make_index_sequence<kBackendCount>());
  return kTables[static_cast<std::size_t>(backend)]();
}

KernelTable queued_kernels(Backend backend) {
  return make_table(backend, []<class Row>(Row) {
    using Arguments = typename Row::Arguments;
    return KernelEntry<Arguments>{run_queued<Row::entry, Arguments>, nullptr};
  });
}

Seconds staged_time() { return time_of_thread; }

}  // namespace meshwright
