/// Packs many small vectors into one contiguous buffer for a collective, and unpacks them again.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/argument_checks.hpp"
#include "kernels/launch.hpp"
#include "kernels/tensor_view.hpp"

namespace meshwright {

// Rows of the list in kernel_table.hpp.
// clang-format off
#define MESHWRIGHT_BUCKET_KERNELS(X) \
  X(pack_bucket,   PackBucket)       \
  X(unpack_bucket, UnpackBucket)
// clang-format on

struct BucketPart {
  Vector vector = {};
  std::int64_t offset = 0;  ///< first element in the bucket
};
inline void check_parts(std::span<const BucketPart> parts, const ConstVector& bucket) {
  check_view(bucket);
  for (const BucketPart& part : parts) {
    check_view(part.vector);
    MW_CHECK(part.offset >= 0 && part.offset + part.vector.size <= bucket.size);
  }
}

/// bucket[offset + i] = scale * part[i], cast to the bucket's dtype.
struct PackBucket {
  std::span<const BucketPart> parts = {};  ///< host: the list; the vectors are in back-end memory
  Vector bucket = {};
  float scale = 1;
};
inline void check(const PackBucket& a) { check_parts(a.parts, a.bucket); }

/// part[i] = scale * bucket[offset + i], cast to the part's dtype; or added to it.
struct UnpackBucket {
  ConstVector bucket = {};
  std::span<const BucketPart> parts = {};  ///< host: the list
  float scale = 1;
  bool accumulate = false;
};
inline void check(const UnpackBucket& a) { check_parts(a.parts, a.bucket); }

}  // namespace meshwright
