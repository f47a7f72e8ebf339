// Implementation of device.hpp by CUDA; part of the plug-in.
#include <cuda_runtime.h>

#include <array>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string_view>

#include "core/base/error.hpp"
#include "kernels/cuda/kernels.hpp"
#include "kernels/cuda/management.hpp"
#include "kernels/device.hpp"
#include "kernels/device/backend_plugin.hpp"
#include "kernels/device/block_pool.hpp"

namespace meshwright::cuda {

void check_call(cudaError_t status, const char* call) {
  if (status == cudaSuccess) return;
  throw RuntimeFailure({.where = "CUDA",
                        .what = std::string(call) + ": " + cudaGetErrorString(status) + " (" +
                                cudaGetErrorName(status) + ")",
                        .hint = ""});
}

namespace {

cudaStream_t as_stream(void* stream) { return static_cast<cudaStream_t>(stream); }
cudaEvent_t as_event(void* event) { return static_cast<cudaEvent_t>(event); }

/// Empty, or that the plug-in has been built for other GPUs than the first one.
std::string missing_code() {
  if (has_code_for_device()) return "";
  cudaDeviceProp properties{};
  MESHWRIGHT_CUDA(cudaGetDeviceProperties(&properties, 0));
  const std::string capability =
      std::to_string(properties.major) + std::to_string(properties.minor);
  return std::string("the GPU plug-in was built for architectures " MESHWRIGHT_ARCHITECTURES
                     ", not for ") +
         properties.name + "; build it with MESHWRIGHT_CUDA_ARCHITECTURES=" + capability + "-real";
}

/// Why no GPU can be used: no driver, a driver that is too old, no device, or no code for it.
std::string missing() {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status == cudaSuccess && count > 0) return missing_code();
  cudaGetLastError();  // clears it, or the next launch would report it
  if (status == cudaErrorInsufficientDriver || status == cudaErrorStubLibrary)
    return "the NVIDIA driver is not installed or does not support CUDA " +
           std::to_string(CUDART_VERSION / 1000) + "." + std::to_string(CUDART_VERSION % 1000 / 10);
  if (status == cudaErrorNoDevice || status == cudaSuccess)
    return "the NVIDIA driver reports no GPU";
  return std::string("the NVIDIA driver reports: ") + cudaGetErrorString(status);
}

int count() {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) == cudaSuccess) return devices;
  cudaGetLastError();
  return 0;
}

/// Freed memory stays with the process for the next step. Another stream gets it only once its work
/// is done, or if the streams are ordered anyway: a stream must not be made to wait for the stream
/// of another rank, which may be waiting for a message from this rank.
void keep_pool(int device) {
  cudaMemPool_t pool = nullptr;
  MESHWRIGHT_CUDA(cudaDeviceGetDefaultMemPool(&pool, device));
  std::uint64_t all = ~std::uint64_t{0};
  MESHWRIGHT_CUDA(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &all));
  int waits_for_others = 0;
  MESHWRIGHT_CUDA(
      cudaMemPoolSetAttribute(pool, cudaMemPoolReuseAllowInternalDependencies, &waits_for_others));
}

std::string hex_of(const cudaUUID_t& uuid) {
  static constexpr std::array<char, 17> kDigits{"0123456789abcdef"};
  std::string text;
  for (const char byte : uuid.bytes) {
    const auto bits = static_cast<unsigned char>(byte);
    text += kDigits[bits >> 4];
    text += kDigits[bits & 15];
  }
  return text;
}

#ifndef MESHWRIGHT_CUDNN
std::string cudnn_version() { return "built without cuDNN"; }
#endif
#ifndef MESHWRIGHT_CUTLASS
std::string cutlass_version() { return "built without CUTLASS"; }
#endif

DeviceDescription describe(int device) {
  cudaDeviceProp properties{};
  MESHWRIGHT_CUDA(cudaGetDeviceProperties(&properties, device));
  std::size_t free = 0, total = 0;
  MESHWRIGHT_CUDA(cudaSetDevice(device));
  MESHWRIGHT_CUDA(cudaMemGetInfo(&free, &total));
  int driver = 0, runtime = 0;
  MESHWRIGHT_CUDA(cudaDriverGetVersion(&driver));
  MESHWRIGHT_CUDA(cudaRuntimeGetVersion(&runtime));
  const auto version = [](int v) {
    return std::to_string(v / 1000) + "." + std::to_string(v % 1000 / 10);
  };
  DeviceDescription d;
  d.name = properties.name;
  d.memory = Bytes(static_cast<std::int64_t>(total));
  d.free_memory = Bytes(static_cast<std::int64_t>(free));
  d.l2_cache = Bytes(properties.l2CacheSize);
  d.multiprocessors = properties.multiProcessorCount;
  d.major = properties.major;
  d.minor = properties.minor;
  d.identity = hex_of(properties.uuid);
  d.driver = "driver for CUDA " + version(driver) + ", runtime " + version(runtime);
  d.libraries = cublas_version() + ", " + cudnn_version() + ", " + cutlass_version();
  std::array<char, 32> bus{};
  MESHWRIGHT_CUDA(cudaDeviceGetPCIBusId(bus.data(), static_cast<int>(bus.size()), device));
  d.state = state_of_gpu(bus.data());
  return d;
}

// ---- memory: CUDA's pool, or a BlockPool on top of cudaMalloc where there is none --------------

void* create_event();
void record(void* event, void* stream);
bool is_complete(void* event);

/// Clears the error of a failed call, or the next launch would report it.
void* allocate_plainly(Bytes bytes) {
  void* memory = nullptr;
  const cudaError_t status = cudaMalloc(&memory, static_cast<std::size_t>(bytes.value));
  if (status == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    return nullptr;
  }
  check_call(status, "cudaMalloc");
  return memory;
}
BlockPool& own_pool() {
  constexpr int kMaxDevices = 64;
  static std::array<std::unique_ptr<BlockPool>, kMaxDevices> pools;
  static std::mutex mutex;
  int device = 0;
  MESHWRIGHT_CUDA(cudaGetDevice(&device));
  const std::lock_guard lock(mutex);
  std::unique_ptr<BlockPool>& mine = pools.at(static_cast<std::size_t>(device));
  if (mine == nullptr)
    mine = std::make_unique<BlockPool>(
        BlockPool::Source{.allocate = allocate_plainly,
                          .release = [](void* memory) { cudaFree(memory); },
                          .wait_for_all_work = [] { MESHWRIGHT_CUDA(cudaDeviceSynchronize()); },
                          .create_event = create_event,
                          .record = record,
                          .is_complete = is_complete});
  return *mine;
}

/// MESHWRIGHT_CUDA_POOL=own selects BlockPool, to find out which pool a bug is in.
bool has_pool() {
  static const bool answer = [] {
    const char* wanted = std::getenv("MESHWRIGHT_CUDA_POOL");
    if (wanted != nullptr && std::string_view(wanted) == "own") return false;
    int device = 0, supported = 0;
    MESHWRIGHT_CUDA(cudaGetDevice(&device));
    return cudaDeviceGetAttribute(&supported, cudaDevAttrMemoryPoolsSupported, device) ==
               cudaSuccess &&
           supported != 0;
  }();
  return answer;
}

/// Null if the pool cannot grow.
void* allocate(Bytes bytes, void* stream) {
  void* memory = nullptr;
  if (bytes.value == 0) return nullptr;
  if (!has_pool()) return own_pool().allocate(bytes, stream);
  const cudaError_t status =
      cudaMallocAsync(&memory, static_cast<std::size_t>(bytes.value), as_stream(stream));
  if (status == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    return nullptr;
  }
  check_call(status, "cudaMallocAsync");
  return memory;
}
/// Also called by destructors: an error of the device has already been reported then.
void release(void* memory, void* stream) {
  if (memory == nullptr) return;
  if (has_pool()) {
    cudaFreeAsync(memory, as_stream(stream));
    return;
  }
  try {
    own_pool().release(memory, stream);
  } catch (const RuntimeFailure&) {  // the memory is lost with the device
  }
}

void select(int device) {
  MESHWRIGHT_CUDA(cudaSetDevice(device));
  if (has_pool()) keep_pool(device);
}

cudaMemPool_t pool_of_current_device() {
  int device = 0;
  cudaMemPool_t pool = nullptr;
  MESHWRIGHT_CUDA(cudaGetDevice(&device));
  MESHWRIGHT_CUDA(cudaDeviceGetDefaultMemPool(&pool, device));
  return pool;
}
std::uint64_t pool_attribute(cudaMemPoolAttr attribute) {
  std::uint64_t value = 0;
  MESHWRIGHT_CUDA(cudaMemPoolGetAttribute(pool_of_current_device(), attribute, &value));
  return value;
}
/// Free memory of the card plus freed memory cached by the pool.
Bytes free_memory() {
  std::size_t free = 0, total = 0;
  MESHWRIGHT_CUDA(cudaMemGetInfo(&free, &total));
  if (!has_pool()) return Bytes(static_cast<std::int64_t>(free)) + own_pool().cached();
  const std::uint64_t kept = pool_attribute(cudaMemPoolAttrReservedMemCurrent) -
                             pool_attribute(cudaMemPoolAttrUsedMemCurrent);
  return Bytes(static_cast<std::int64_t>(free + kept));
}
Bytes memory() {
  std::size_t free = 0, total = 0;
  MESHWRIGHT_CUDA(cudaMemGetInfo(&free, &total));
  return Bytes(static_cast<std::int64_t>(total));
}

/// Pinned, so that copies are asynchronous.
void* allocate_host(Bytes bytes) {
  void* memory = nullptr;
  const cudaError_t status =
      cudaHostAlloc(&memory, static_cast<std::size_t>(bytes.value), cudaHostAllocPortable);
  if (status == cudaSuccess) return memory;
  cudaGetLastError();
  return nullptr;
}
void release_host(void* memory) {
  if (memory != nullptr) cudaFreeHost(memory);
}

void copy(void* to, const void* from, Bytes bytes, void* stream) {
  if (bytes.value == 0) return;
  MESHWRIGHT_CUDA(cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes.value),
                                  cudaMemcpyDefault, as_stream(stream)));
}
void fill(void* to, int byte, Bytes bytes, void* stream) {
  if (bytes.value == 0) return;
  MESHWRIGHT_CUDA(
      cudaMemsetAsync(to, byte, static_cast<std::size_t>(bytes.value), as_stream(stream)));
}

void* create_stream() {
  cudaStream_t stream = nullptr;
  MESHWRIGHT_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  return stream;
}
void destroy_stream(void* stream) { cudaStreamDestroy(as_stream(stream)); }
void wait_for_stream(void* stream) { MESHWRIGHT_CUDA(cudaStreamSynchronize(as_stream(stream))); }

void* create_event() {
  cudaEvent_t event = nullptr;
  MESHWRIGHT_CUDA(cudaEventCreate(&event));
  return event;
}
void destroy_event(void* event) { cudaEventDestroy(as_event(event)); }
void record(void* event, void* stream) {
  MESHWRIGHT_CUDA(cudaEventRecord(as_event(event), as_stream(stream)));
}
void wait(void* stream, void* event) {
  MESHWRIGHT_CUDA(cudaStreamWaitEvent(as_stream(stream), as_event(event), 0));
}
void wait_for_event(void* event) { MESHWRIGHT_CUDA(cudaEventSynchronize(as_event(event))); }
bool is_complete(void* event) {
  const cudaError_t status = cudaEventQuery(as_event(event));
  if (status == cudaErrorNotReady) return false;
  check_call(status, "cudaEventQuery");
  return true;
}
Seconds elapsed(void* first, void* second) {
  float milliseconds = 0;
  MESHWRIGHT_CUDA(cudaEventElapsedTime(&milliseconds, as_event(first), as_event(second)));
  return Seconds(1e-3 * static_cast<double>(milliseconds));
}

DeviceTable device() {
  DeviceTable t;
  t.backend = Backend::kCuda;
  t.missing = missing;
  t.count = count;
  t.describe = describe;
  t.select = select;
  t.allocate = allocate;
  t.release = release;
  t.free_memory = free_memory;
  t.memory = memory;
  t.allocate_host = allocate_host;
  t.release_host = release_host;
  t.copy = copy;
  t.fill = fill;
  t.create_stream = create_stream;
  t.destroy_stream = destroy_stream;
  t.wait_for_stream = wait_for_stream;
  t.create_event = create_event;
  t.destroy_event = destroy_event;
  t.record = record;
  t.wait = wait;
  t.wait_for_event = wait_for_event;
  t.is_complete = is_complete;
  t.hold = cuda::hold;
  t.elapsed = elapsed;
  return t;
}

}  // namespace
}  // namespace meshwright::cuda

extern "C" __attribute__((visibility("default"))) const meshwright::PluginExports*
meshwright_exports() {
  using namespace meshwright;  // NOLINT: one function, of no namespace
  // Streams beyond the number of hardware queues share a queue and wait for each other there: a
  // rank's lanes and message streams exceed the default of 8. Read on first use of a device.
  ::setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", /*overwrite=*/0);
  static const PluginExports exports{.kernels = cuda::table(), .device = cuda::device()};
  return &exports;
}
