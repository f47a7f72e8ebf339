// CUDA's language and runtime as far as the kernels use them, on the CPU: see gpu.hpp.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <utility>

#include "tests/kernels/emulated/gpu.hpp"

#define __global__
#define __device__
#define __host__
#define __shared__ static thread_local
#define __grid_constant__
#define __launch_bounds__(...)
#define threadIdx (::emulated::thread_index)
#define blockIdx (::emulated::block_index)
#define blockDim (::emulated::block_dim)
#define gridDim (::emulated::grid_dim)

using dim3 = emulated::Dim;
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
struct alignas(8) uint2 {
  unsigned x, y;
};
struct alignas(16) float4 {
  float x, y, z, w;
};
struct alignas(8) float2 {
  float x, y;
};
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
inline float2 make_float2(float x, float y) { return {x, y}; }

// ---- among threads ----

inline void __syncthreads() { emulated::meet_block(); }
inline void __syncwarp(unsigned mask = 0xFFFFFFFFU) {
  emulated::meet_warp(
      mask, [](emulated::Lanes, unsigned) {}, nullptr);
}

namespace emulated {
template <class T>
struct Shuffled {
  T value, result;
  int lane;
};
template <class T>
T shuffle(unsigned mask, T value, int lane) {
  Shuffled<T> mine{value, value, lane};
  meet_warp(
      mask,
      [](Lanes lanes, unsigned) {
        for (void* of_lane : lanes) {
          if (of_lane == nullptr) continue;
          auto& asks = *static_cast<Shuffled<T>*>(of_lane);
          const void* from = lanes[asks.lane];
          MW_CHECK(from != nullptr);  // a lane outside of the mask
          asks.result = static_cast<const Shuffled<T>*>(from)->value;
        }
      },
      &mine);
  return mine.result;
}
inline int my_lane() {
  return static_cast<int>(
      (thread_index.x + block_dim.x * (thread_index.y + block_dim.y * thread_index.z)) % kLanes);
}
}  // namespace emulated
template <class T>
T __shfl_sync(unsigned mask, T value, int lane) {
  return emulated::shuffle(mask, value, lane % emulated::kLanes);
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int bits) {
  return emulated::shuffle(mask, value, emulated::my_lane() ^ bits);
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, int distance) {
  const int from = emulated::my_lane() + distance;
  return emulated::shuffle(mask, value, from < emulated::kLanes ? from : emulated::my_lane());
}
template <class T>
unsigned __match_any_sync(unsigned mask, T value) {
  struct Matched {
    T value;
    unsigned equal;
  } mine{value, 0};
  emulated::meet_warp(
      mask,
      [](emulated::Lanes lanes, unsigned) {
        for (void* of_lane : lanes)
          for (int other = 0; of_lane != nullptr && other < emulated::kLanes; ++other)
            if (lanes[other] != nullptr &&
                static_cast<Matched*>(lanes[other])->value == static_cast<Matched*>(of_lane)->value)
              static_cast<Matched*>(of_lane)->equal |= 1U << other;
      },
      &mine);
  return mine.equal;
}

template <class T>
T atomicAdd(T* to, T value) {
  return std::exchange(*to, *to + value);
}

// ---- arithmetic ----

inline float __uint_as_float(unsigned bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}
inline unsigned __float_as_uint(float value) {
  unsigned bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}
inline int __popc(unsigned bits) { return __builtin_popcount(bits); }
inline float rsqrtf(float x) { return 1.0F / std::sqrt(x); }
inline float __expf(float x) { return std::exp(x); }
inline float __fdividef(float a, float b) { return a / b; }
inline void sincospif(float x, float* sine, float* cosine) {
  *sine = static_cast<float>(std::sin(3.141592653589793 * static_cast<double>(x)));
  *cosine = static_cast<float>(std::cos(3.141592653589793 * static_cast<double>(x)));
}

// ---- runtime ----

enum cudaError_t {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorInvalidDeviceFunction = 98,
  cudaErrorNoKernelImageForDevice = 209
};
struct cudaFuncAttributes {};
using cudaStream_t = void*;
struct EmulatedEvent {
  std::chrono::steady_clock::time_point at;
};
using cudaEvent_t = EmulatedEvent*;
enum cudaMemcpyKind { cudaMemcpyHostToDevice = 1, cudaMemcpyDeviceToDevice = 3 };
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize };
inline cudaError_t cudaGetLastError() { return cudaSuccess; }
inline const char* cudaGetErrorString(cudaError_t) { return "emulated"; }
template <class Kernel>
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes*, Kernel*) {
  return cudaSuccess;
}
template <class Kernel>
cudaError_t cudaFuncSetAttribute(Kernel* kernel, cudaFuncAttribute, int bytes) {
  emulated::allowed_shared_bytes()[reinterpret_cast<const void*>(kernel)] =
      static_cast<std::size_t>(bytes);
  return cudaSuccess;
}
inline cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}
inline cudaError_t cudaEventCreate(cudaEvent_t* event) {
  *event = new EmulatedEvent;
  return cudaSuccess;
}
inline cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t = nullptr) {
  event->at = std::chrono::steady_clock::now();
  return cudaSuccess;
}
inline cudaError_t cudaEventSynchronize(cudaEvent_t) { return cudaSuccess; }
inline cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t first, cudaEvent_t last) {
  *milliseconds = std::chrono::duration<float, std::milli>(last->at - first->at).count();
  return cudaSuccess;
}
inline cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}
inline cudaError_t cudaMalloc(void** memory, std::size_t bytes) {
  *memory = ::operator new(bytes);
  return cudaSuccess;
}
inline cudaError_t cudaFree(void* memory) {
  ::operator delete(memory);
  return cudaSuccess;
}
inline cudaError_t cudaMemsetAsync(void* memory, int byte, std::size_t bytes, cudaStream_t) {
  const emulated::DeviceAtWork at_work;
  std::memset(memory, byte, bytes);
  return cudaSuccess;
}
inline cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind,
                                   cudaStream_t) {
  const emulated::DeviceAtWork at_work;
  std::memcpy(to, from, bytes);
  return cudaSuccess;
}
