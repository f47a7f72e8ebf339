/// A device on the host that puts everything off until somebody waits for it: work lies in streams,
/// in order, and is done when the host waits for the stream, or another stream for one of its
/// events. Whoever reads what nobody waited for, or lets go of what work still needs, gets wrong
/// numbers. New memory is NaN.
#pragma once

#include <chrono>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <span>
#include <vector>

#include "core/check.hpp"
#include "kernels/argument_fields.hpp"
#include "kernels/device.hpp"

namespace meshwright {

namespace late {

/// One for the whole device: the work of a stream is done by whoever waits.
inline std::recursive_mutex& mutex() {
  static std::recursive_mutex all;
  return all;
}

struct Stream {
  std::deque<std::function<void()>> work;
  void do_next() {
    MW_CHECK(!work.empty());
    const std::function<void()> next = std::move(work.front());
    work.pop_front();
    next();
  }
};
struct Event {
  Stream* stream = nullptr;  ///< that it was recorded in
  bool has_happened = false;
  std::chrono::steady_clock::time_point at;
  void wait() {
    while (!has_happened) stream->do_next();
  }
};
using SharedEvent = std::shared_ptr<Event>;

inline Stream& stream_at(void* stream) {
  MW_CHECK(stream != nullptr);
  return *static_cast<Stream*>(stream);
}
inline const SharedEvent& event_at(void* event) { return *static_cast<SharedEvent*>(event); }
template <class Work>
void put(void* stream, Work work) {
  const std::lock_guard lock(mutex());
  stream_at(stream).work.push_back(std::move(work));
}
inline void* new_memory(Bytes bytes) {
  const auto size = static_cast<std::size_t>(bytes.value);
  void* memory = ::operator new (size, std::align_val_t{256});
  std::memset(memory, 0xFF, size);
  return memory;
}
inline void free_memory(void* memory) { ::operator delete (memory, std::align_val_t{256}); }

/// Lists that a kernel reads before its call returns.
struct HostLists {
  std::vector<std::vector<std::int64_t>> numbers;
  std::vector<BucketPart> parts;
  void operator()(std::span<const std::int64_t>& list) {
    list = numbers.emplace_back(list.begin(), list.end());
  }
  void operator()(std::span<const BucketPart>& list) {
    parts.assign(list.begin(), list.end());
    list = parts;
  }
  template <class T>
  void operator()(T&) {}
};

template <auto kKernel, class Arguments>
void run(const Launch& launch, const Arguments& arguments) {
  struct Call {
    Arguments arguments;
    HostLists lists;
  };
  const auto call = std::make_shared<Call>(Call{arguments, {}});
  for_each_field(call->arguments, call->lists);
  put(launch.stream, [call, launch] {
    (kernel_table(Backend::kCpu).*kKernel)({nullptr, launch.scratch, launch.scratch_size},
                                           call->arguments);
  });
}

inline DeviceTable make_device() {
  DeviceTable t;
  t.missing = [] { return std::string(); };
  t.count = [] { return 1; };
  t.describe = [](int) { return DeviceDescription{.name = "late"}; };
  t.select = [](int) {};
  t.allocate = [](Bytes bytes, void*) { return new_memory(bytes); };
  t.give_back = [](void* memory, void* stream) { put(stream, [memory] { free_memory(memory); }); };
  t.shares_memory = [] { return true; };
  t.allocate_shared = new_memory;
  t.give_back_shared = free_memory;
  t.bring = [](const void*, Bytes, void*) {};
  t.copy = [](void* to, const void* from, Bytes bytes, void* stream) {
    put(stream, [=] { std::memmove(to, from, static_cast<std::size_t>(bytes.value)); });
  };
  t.fill = [](void* to, int byte, Bytes bytes, void* stream) {
    put(stream, [=] { std::memset(to, byte, static_cast<std::size_t>(bytes.value)); });
  };
  t.create_stream = []() -> void* { return new Stream; };
  t.destroy_stream = [](void* stream) {
    const std::lock_guard lock(mutex());
    while (!stream_at(stream).work.empty()) stream_at(stream).do_next();
    delete &stream_at(stream);
  };
  t.wait_for_stream = [](void* stream) {
    const std::lock_guard lock(mutex());
    while (!stream_at(stream).work.empty()) stream_at(stream).do_next();
  };
  t.create_event = []() -> void* { return new SharedEvent(std::make_shared<Event>()); };
  t.destroy_event = [](void* event) { delete static_cast<SharedEvent*>(event); };
  t.record = [](void* event, void* stream) {
    const SharedEvent happens = event_at(event);
    happens->stream = &stream_at(stream);
    happens->has_happened = false;
    put(stream, [happens] {
      happens->has_happened = true;
      happens->at = std::chrono::steady_clock::now();
    });
  };
  t.wait = [](void* stream, void* event) {
    put(stream, [happens = event_at(event)] { happens->wait(); });
  };
  t.wait_for_event = [](void* event) {
    const std::lock_guard lock(mutex());
    event_at(event)->wait();
  };
  t.has_happened = [](void* event) { return event_at(event)->has_happened; };
  t.delay = [](Seconds, void*) {};
  t.between = [](void* first, void* second) {
    const std::chrono::duration<double> passed = event_at(second)->at - event_at(first)->at;
    return Seconds(passed.count());
  };
  return t;
}

inline KernelTable make_kernels() {
  KernelTable table;
  table.backend = Backend::kCpu;
  for_each_kernel([&]<auto kKernel>() {
    [&]<class Arguments>(KernelEntry<Arguments>& entry) {
      entry = {&run<kKernel, Arguments>, (kernel_table(Backend::kCpu).*kKernel).scratch};
    }(table.*kKernel);
  });
  return table;
}

}  // namespace late

inline const DeviceTable& late_device() {
  static const DeviceTable device = late::make_device();
  return device;
}
/// The cpu kernels, on that device.
inline const KernelTable& late_kernels() {
  static const KernelTable kernels = late::make_kernels();
  return kernels;
}

}  // namespace meshwright
