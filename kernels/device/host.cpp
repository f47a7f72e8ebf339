#include <chrono>
#include <cstring>
#include <new>

#include <fmt/format.h>

#include "core/base/check.hpp"
#include "core/base/error.hpp"
#include "kernels/device.hpp"

namespace meshwright {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::align_val_t kHostAlignment{256};

/// Work completes immediately, so an event is the time at which it was recorded.
struct HostEvent {
  Clock::time_point at;
};
HostEvent& event_at(void* event) {
  MW_CHECK(event != nullptr);
  return *static_cast<HostEvent*>(event);
}

DeviceTable make_table() {
  DeviceTable t;
  t.backend = Backend::kCpu;
  t.missing = [] { return std::string(); };
  t.count = [] { return 1; };
  t.describe = [](int) { return DeviceDescription{.name = "host"}; };
  t.select = [](int device) { MW_CHECK(device == 0); };
  t.free_memory = t.memory = [] { return Bytes(0); };  // unused: operator new throws
  t.allocate = [](Bytes bytes, void*) {
    return ::operator new(static_cast<std::size_t>(bytes.value), kHostAlignment);
  };
  t.release = [](void* memory, void*) { ::operator delete(memory, kHostAlignment); };
  t.allocate_host = [](Bytes bytes) {
    return ::operator new(static_cast<std::size_t>(bytes.value), kHostAlignment);
  };
  t.release_host = [](void* memory) { ::operator delete(memory, kHostAlignment); };
  t.copy = [](void* to, const void* from, Bytes bytes, void*) {
    if (bytes.value > 0) std::memmove(to, from, static_cast<std::size_t>(bytes.value));
  };
  t.fill = [](void* to, int byte, Bytes bytes, void*) {
    if (bytes.value > 0) std::memset(to, byte, static_cast<std::size_t>(bytes.value));
  };
  t.create_stream = []() -> void* { return nullptr; };
  t.destroy_stream = [](void*) {};
  t.wait_for_stream = [](void*) {};
  t.create_event = []() -> void* { return new HostEvent{}; };
  t.destroy_event = [](void* event) { delete static_cast<HostEvent*>(event); };
  t.record = [](void* event, void*) { event_at(event).at = Clock::now(); };
  t.wait = [](void*, void*) {};
  t.wait_for_event = [](void*) {};
  t.is_complete = [](void*) { return true; };
  t.hold = [](const std::uint32_t*, Seconds, void*) {};  // nothing is asynchronous
  t.elapsed = [](void* first, void* second) {
    const std::chrono::duration<double> passed = event_at(second).at - event_at(first).at;
    return Seconds(passed.count());
  };
  return t;
}

}  // namespace

void* allocated_on(const DeviceTable& device, Bytes bytes, void* stream) {
  void* memory = device.allocate(bytes, stream);
  if (memory != nullptr || bytes.value == 0) return memory;
  constexpr double kGibibyte = 1 << 30;
  const auto text = [](Bytes b) {
    return fmt::format("{:.2f} GiB", static_cast<double>(b.value) / kGibibyte);
  };
  throw RuntimeFailure(
      {.where = "GPU memory",
       .what = fmt::format("out of memory: tried to allocate {}, {} of {} are free", text(bytes),
                           text(device.free_memory()), text(device.memory())),
       .hint = "use a smaller micro-batch, --recompute, --zero, or fewer ranks per GPU; "
               "'meshwright simulate' predicts the peak memory"});
}

const DeviceTable& host_device() {
  static const DeviceTable table = make_table();
  return table;
}

}  // namespace meshwright
