#include "kernels/reference/element_access.hpp"
#include "kernels/reference/kernels.hpp"

namespace meshwright::reference {

void run(const Launch&, const PackBucket& a) {
  for (const BucketPart& part : a.parts)
    for (std::int64_t i = 0; i < part.vector.size; ++i)
      put(a.bucket, part.offset + i, double{a.scale} * at(part.vector, i));
}

void run(const Launch&, const UnpackBucket& a) {
  for (const BucketPart& part : a.parts)
    for (std::int64_t i = 0; i < part.vector.size; ++i) {
      const double before = a.accumulate ? at(part.vector, i) : 0;
      put(part.vector, i, before + double{a.scale} * at(a.bucket, part.offset + i));
    }
}

}  // namespace meshwright::reference
