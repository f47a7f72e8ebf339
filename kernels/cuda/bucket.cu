// Packing: one launch for up to kMaxParts parts, whose list is passed in the kernel arguments.
#include "kernels/cuda/pack.hpp"

namespace meshwright::cuda {
namespace {

struct Parts {
  static constexpr int kMaxParts = 64;
  View part[kMaxParts];
  std::int64_t offset[kMaxParts], size[kMaxParts];
};

/// Part blockIdx.y, pack by pack. A part may start anywhere in the bucket; only if that is a
/// multiple of eight are accesses to the bucket 16 bytes wide.
template <bool kPacking>
__global__ void __launch_bounds__(kMapThreads)
    bucket_kernel(const View bucket, const Parts parts, const float scale, const bool accumulate) {
  const View part = parts.part[blockIdx.y];
  const std::int64_t size = parts.size[blockIdx.y], offset = parts.offset[blockIdx.y];
  View aligned = bucket;
  aligned.wide = bucket.wide && offset % kPack == 0;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kMapThreads * kPack;
  std::int64_t i = (static_cast<std::int64_t>(blockIdx.x) * kMapThreads + threadIdx.x) * kPack;
  for (; i < size; i += step) {
    const int count = pack_count(size, i);
    Pack p = kPacking ? load_pack(part, 0, i, count) : load_pack(aligned, 0, offset + i, count);
#pragma unroll
    for (int e = 0; e < kPack; ++e) p.v[e] *= scale;
    if (!kPacking && accumulate) {
      const Pack before = load_pack(part, 0, i, count);
#pragma unroll
      for (int e = 0; e < kPack; ++e) p.v[e] += before.v[e];
    }
    if (kPacking)
      store_pack(aligned, 0, offset + i, count, p);
    else
      store_pack(part, 0, i, count, p);
  }
}

template <bool kPacking>
void move(const Launch& launch, std::span<const BucketPart> parts, const ConstVector& bucket,
          float scale, bool accumulate) {
  for (std::size_t first = 0; first < parts.size(); first += Parts::kMaxParts) {
    const std::size_t count =
        parts.size() - first < Parts::kMaxParts ? parts.size() - first : Parts::kMaxParts;
    Parts list{};
    std::int64_t largest = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const BucketPart& part = parts[first + i];
      list.part[i] = view_of(ConstVector(part.vector));
      list.offset[i] = part.offset;
      list.size[i] = part.vector.size;
      largest = part.vector.size > largest ? part.vector.size : largest;
    }
    if (largest == 0) continue;
    const std::int64_t blocks = ceil_divide(largest, kMapThreads * kPack);
    const dim3 grid(grid_of(blocks < 4096 ? blocks : 4096), static_cast<unsigned>(count));
    bucket_kernel<kPacking>
        <<<grid, kMapThreads, 0, stream_of(launch)>>>(view_of(bucket), list, scale, accumulate);
    check_launch();
  }
}

}  // namespace

void run(const Launch& launch, const PackBucket& a) {
  move<true>(launch, a.parts, a.bucket, a.scale, false);
}

void run(const Launch& launch, const UnpackBucket& a) {
  move<false>(launch, a.parts, a.bucket, a.scale, a.accumulate);
}

}  // namespace meshwright::cuda
