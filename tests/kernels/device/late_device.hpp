/// A device on the host that defers all work until something waits for it: work is queued in
/// streams, and is executed when the host waits for the stream, or another stream for one of its
/// events. An allocation that fails also executes one piece of work of every stream. Reading
/// without waiting, or freeing memory that work still needs, gives wrong numbers. Its memory is
/// hidden from the host: accessing it without a copy crashes. New and freed memory is NaN.
#pragma once

#include <chrono>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <vector>

#include "core/base/check.hpp"
#include "kernels/argument_fields.hpp"
#include "kernels/device.hpp"
#include "kernels/for_each_kernel.hpp"
#include "tests/kernels/device/hidden_memory.hpp"

namespace meshwright {

namespace late {

/// One for the whole device: the thread that waits executes the work of a stream.
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
  Stream* stream = nullptr;  ///< in which it was recorded
  bool is_complete = false;
  std::chrono::steady_clock::time_point at;
  void wait() {
    while (!is_complete) stream->do_next();
  }
};
using SharedEvent = std::shared_ptr<Event>;

/// All of the device.
inline std::set<Stream*>& streams() {
  static std::set<Stream*> all;
  return all;
}
inline void pass_time() {
  const std::lock_guard lock(mutex());
  for (Stream* stream : streams())
    if (!stream->work.empty()) stream->do_next();
}

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
/// Memory of the single device: larger than what tests need.
inline HiddenMemory& memory() {
  static HiddenMemory all(Bytes(std::int64_t{1} << 28));
  return all;
}

/// Host lists that a kernel reads before its call returns.
struct HostLists {
  std::vector<BucketPart> parts;
  void operator()(std::span<const BucketPart>& list) {
    parts.assign(list.begin(), list.end());
    list = parts;
  }
  template <class T>
  void operator()(T&) {}
};

/// The kernels that do the work, on memory that they can read.
using TableOf = const KernelTable& (*)();
inline const KernelTable& cpu_table() { return kernel_table(Backend::kCpu); }

template <TableOf kTable, auto kKernel, class Arguments>
void run(const Launch& launch, const Arguments& arguments) {
  struct Call {
    Arguments arguments;
    HostLists lists;
  };
  const auto call = std::make_shared<Call>(Call{arguments, {}});
  for_each_field(call->arguments, call->lists);
  AsSeen as_seen(memory());
  as_seen(std::span(call->lists.parts));
  for_each_field(call->arguments, as_seen);
  put(launch.stream, [call, scratch = memory().seen(launch.scratch), size = launch.scratch_size] {
    (kTable().*kKernel)({nullptr, scratch, size}, call->arguments);
  });
}

inline DeviceTable make_device() {
  DeviceTable t;
  t.missing = [] { return std::string(); };
  t.count = [] { return 1; };
  t.describe = [](int) { return DeviceDescription{.name = "late"}; };
  t.select = [](int) {};
  t.free_memory = [] { return memory().free(); };
  t.memory = [] { return memory().size(); };
  t.allocate = [](Bytes bytes, void*) {
    void* block = memory().allocate(bytes);
    if (block == nullptr) pass_time();
    return block;
  };
  t.release = [](void* block, void* stream) {
    if (block != nullptr) put(stream, [block] { memory().release(block); });
  };
  t.allocate_host = [](Bytes bytes) {
    return ::operator new (static_cast<std::size_t>(bytes.value), std::align_val_t{64});
  };
  t.release_host = [](void* block) { ::operator delete (block, std::align_val_t{64}); };
  t.copy = [](void* to, const void* from, Bytes bytes, void* stream) {
    put(stream, [to = memory().seen(to), from = memory().seen(from), bytes] {
      std::memmove(to, from, static_cast<std::size_t>(bytes.value));
    });
  };
  t.fill = [](void* to, int byte, Bytes bytes, void* stream) {
    put(stream, [to = memory().seen(to), byte, bytes] {
      std::memset(to, byte, static_cast<std::size_t>(bytes.value));
    });
  };
  t.create_stream = []() -> void* {
    const std::lock_guard lock(mutex());
    return *streams().insert(new Stream).first;
  };
  t.destroy_stream = [](void* stream) {
    const std::lock_guard lock(mutex());
    while (!stream_at(stream).work.empty()) stream_at(stream).do_next();
    streams().erase(&stream_at(stream));
    delete &stream_at(stream);
  };
  t.wait_for_stream = [](void* stream) {
    const std::lock_guard lock(mutex());
    while (!stream_at(stream).work.empty()) stream_at(stream).do_next();
  };
  t.create_event = []() -> void* { return new SharedEvent(std::make_shared<Event>()); };
  t.destroy_event = [](void* event) { delete static_cast<SharedEvent*>(event); };
  t.record = [](void* event, void* stream) {
    // Like cudaEventRecord: re-recording does not affect earlier waits.
    const auto happens = std::make_shared<Event>();
    happens->stream = &stream_at(stream);
    *static_cast<SharedEvent*>(event) = happens;
    put(stream, [happens] {
      happens->is_complete = true;
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
  t.is_complete = [](void* event) {  // polling counts as waiting
    const std::lock_guard lock(mutex());
    Event& asked = *event_at(event);
    if (!asked.is_complete) asked.stream->do_next();
    return asked.is_complete;
  };
  t.hold = [](const std::uint32_t*, Seconds, void*) {};
  t.elapsed = [](void* first, void* second) {
    const std::chrono::duration<double> passed = event_at(second)->at - event_at(first)->at;
    return Seconds(passed.count());
  };
  return t;
}

template <TableOf kTable>
KernelTable make_kernels() {
  return make_table(kTable().backend, []<class Row>(Row) {
    using Arguments = typename Row::Arguments;
    return KernelEntry<Arguments>{run<kTable, Row::entry, Arguments>,
                                  (kTable().*Row::entry).scratch};
  });
}

}  // namespace late

inline const DeviceTable& late_device() {
  static const DeviceTable device = late::make_device();
  return device;
}
/// The CPU kernels on this device, as a table.
template <late::TableOf kTable = late::cpu_table>
const KernelTable& late_kernels() {
  static const KernelTable kernels = late::make_kernels<kTable>();
  return kernels;
}

}  // namespace meshwright
