// Implementation of kernels/device/activity.hpp by CUPTI; part of the plug-in.
#include <cupti.h>
#include <cxxabi.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>

#include "kernels/device/activity.hpp"
#include "kernels/device/loaded_library.hpp"

namespace meshwright {
namespace {

#if CUPTI_API_VERSION >= 130000  // before CUDA 13 this counted 1, 2, ...: 22 in CUDA 12.4
using KernelRecord = CUpti_ActivityKernel10;
using CopyRecord = CUpti_ActivityMemcpy6;
constexpr const char* kLibraryFile = "libcupti.so.13";
#else
using KernelRecord = CUpti_ActivityKernel9;
using CopyRecord = CUpti_ActivityMemcpy5;
constexpr const char* kLibraryFile = "libcupti.so.12";
#endif

/// The functions used, looked up by name in the library.
struct Library {
  decltype(&cuptiGetVersion) version = nullptr;
  decltype(&cuptiGetResultString) result_string = nullptr;
  decltype(&cuptiActivityRegisterTimestampCallback) register_clock = nullptr;
  decltype(&cuptiActivityRegisterCallbacks) register_buffers = nullptr;
  decltype(&cuptiActivityEnable) enable = nullptr;
  decltype(&cuptiActivityDisable) disable = nullptr;
  decltype(&cuptiActivityFlushAll) flush = nullptr;
  decltype(&cuptiActivityGetNextRecord) next_record = nullptr;
  decltype(&cuptiActivityPushExternalCorrelationId) push = nullptr;
  decltype(&cuptiActivityPopExternalCorrelationId) pop = nullptr;
  std::string missing;
};

Library open() {
  Library l;
  LoadedLibrary opened("CUPTI", kLibraryFile);
  opened.find(l.version, "cuptiGetVersion");
  opened.find(l.result_string, "cuptiGetResultString");
  opened.find(l.register_clock, "cuptiActivityRegisterTimestampCallback");
  opened.find(l.register_buffers, "cuptiActivityRegisterCallbacks");
  opened.find(l.enable, "cuptiActivityEnable");
  opened.find(l.disable, "cuptiActivityDisable");
  opened.find(l.flush, "cuptiActivityFlushAll");
  opened.find(l.next_record, "cuptiActivityGetNextRecord");
  opened.find(l.push, "cuptiActivityPushExternalCorrelationId");
  opened.find(l.pop, "cuptiActivityPopExternalCorrelationId");
  l.missing = opened.missing();
  std::uint32_t version = 0;
  // Records of another version may have a different layout.
  if (l.missing.empty() && (l.version(&version) != CUPTI_SUCCESS || version != CUPTI_API_VERSION))
    l.missing = "CUPTI has API version " + std::to_string(version) + ", expected " +
                std::to_string(CUPTI_API_VERSION);
  return l;
}
const Library& library() {
  static const Library l = open();
  return l;
}

constexpr CUpti_ActivityKind kKinds[] = {
    CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION, CUPTI_ACTIVITY_KIND_RUNTIME,
    CUPTI_ACTIVITY_KIND_DRIVER, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY};

/// Everything recorded so far; buffers arrive on a CUPTI thread.
struct Records {
  std::mutex mutex;
  std::map<std::uint32_t, std::uint64_t> task_of_call;
  std::vector<std::pair<std::uint32_t, DeviceActivity>> activities;  ///< by correlation ID
  bool are_wanted = false;
};
Records& records() {
  static Records all;
  return all;
}

std::uint64_t host_nanoseconds() {
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                        std::chrono::steady_clock::now().time_since_epoch())
                                        .count());
}

std::string readable(const char* symbol) {
  if (symbol == nullptr) return "kernel";
  const std::unique_ptr<char, void (*)(void*)> name(
      abi::__cxa_demangle(symbol, nullptr, nullptr, nullptr), std::free);
  return name == nullptr ? symbol : name.get();
}

/// The fields common to kernels and copies.
template <class Record>
DeviceActivity activity_of(const Record& record) {
  return {.start = static_cast<std::int64_t>(record.start),
          .end = static_cast<std::int64_t>(record.end),
          .device = record.deviceId,
          .stream = record.streamId};
}

void take(const CUpti_Activity* record, Records& all) {
  if (record->kind == CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION) {
    const auto* joined = reinterpret_cast<const CUpti_ActivityExternalCorrelation*>(record);
    all.task_of_call[joined->correlationId] = joined->externalId;
  } else if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
    const auto* kernel = reinterpret_cast<const KernelRecord*>(record);
    DeviceActivity made = activity_of(*kernel);
    made.name = readable(kernel->name);
    all.activities.emplace_back(kernel->correlationId, std::move(made));
  } else if (record->kind == CUPTI_ACTIVITY_KIND_MEMCPY) {
    const auto* copy = reinterpret_cast<const CopyRecord*>(record);
    DeviceActivity made = activity_of(*copy);
    made.bytes = Bytes(static_cast<std::int64_t>(copy->bytes));
    all.activities.emplace_back(copy->correlationId, std::move(made));
  }
}

void CUPTIAPI give_buffer(std::uint8_t** buffer, std::size_t* size, std::size_t* most_records) {
  constexpr std::size_t kSize = std::size_t{4} << 20, kAlignment = 8;
  *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(kAlignment, kSize));
  *size = *buffer == nullptr ? 0 : kSize;
  *most_records = 0;  // as many as fit
}
void CUPTIAPI take_buffer(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t,
                          std::size_t valid) {
  Records& all = records();
  const std::lock_guard lock(all.mutex);
  CUpti_Activity* record = nullptr;
  while (all.are_wanted && library().next_record(buffer, valid, &record) == CUPTI_SUCCESS)
    take(record, all);
  std::free(buffer);
}

std::string said(CUptiResult result) {
  const char* text = nullptr;
  library().result_string(result, &text);
  return "CUPTI error: " + std::string(text == nullptr ? "unknown error" : text);
}

void disable_all() {
  for (const CUpti_ActivityKind kind : kKinds) library().disable(kind);
}

std::string start() {
  const Library& l = library();
  if (!l.missing.empty()) return l.missing;
  CUptiResult result = l.register_clock(host_nanoseconds);
  if (result == CUPTI_SUCCESS) result = l.register_buffers(give_buffer, take_buffer);
  for (const CUpti_ActivityKind kind : kKinds)
    if (result == CUPTI_SUCCESS) result = l.enable(kind);
  if (result != CUPTI_SUCCESS) {
    disable_all();
    return said(result);
  }
  Records& all = records();
  const std::lock_guard lock(all.mutex);
  all.task_of_call.clear();
  all.activities.clear();
  all.are_wanted = true;
  return "";
}

void enter(std::uint64_t task) { library().push(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, task); }
void leave() {
  std::uint64_t task = 0;
  library().pop(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, &task);
}

std::vector<DeviceActivity> stop() {
  library().flush(0);
  disable_all();
  Records& all = records();
  const std::lock_guard lock(all.mutex);
  all.are_wanted = false;
  std::vector<DeviceActivity> activities;
  for (auto& [call, activity] : all.activities) {
    const auto found = all.task_of_call.find(call);
    if (found != all.task_of_call.end()) activity.task = found->second;
    activities.push_back(std::move(activity));
  }
  std::ranges::stable_sort(activities, {}, &DeviceActivity::start);
  return activities;
}

}  // namespace
}  // namespace meshwright

extern "C" __attribute__((visibility("default"))) const meshwright::ActivityTable*
meshwright_activity() {
  static const meshwright::ActivityTable table{meshwright::start, meshwright::enter,
                                               meshwright::leave, meshwright::stop};
  return &table;
}
