#include "executor/transport/communicator.hpp"

#include <algorithm>

#include "core/base/check.hpp"
#include "kernels/bfloat16.hpp"

namespace meshwright {
namespace {

template <class T, class Combine>
MessageTimes combine(Communicator& communicator, const Vector& values, const MessageSource& source,
                     Combine combined) {
  std::vector<T> message(static_cast<std::size_t>(values.size));
  const MessageTimes times =
      communicator.receive(source.from, source.tag, std::as_writable_bytes(std::span(message)));
  T* mine = static_cast<T*>(values.data);
  for (std::size_t i = 0; i < message.size(); ++i) mine[i] = combined(message[i], mine[i]);
  return times;
}

}  // namespace

void Communicator::copy(std::span<std::byte> to, std::span<const std::byte> from) {
  std::ranges::copy(from, to.begin());
}

MessageTimes Communicator::receive_into(const Vector& values, const MessageSource& source,
                                        Reduction reduction) {
  if (values.dtype == Dtype::kBf16) {
    MW_CHECK(reduction == Reduction::kSum);
    return combine<std::uint16_t>(*this, values, source, [](std::uint16_t a, std::uint16_t b) {
      return to_bf16(from_bf16(a) + from_bf16(b));
    });
  }
  MW_CHECK(values.dtype == Dtype::kFp32);
  if (reduction == Reduction::kSum)
    return combine<float>(*this, values, source, [](float a, float b) { return a + b; });
  return combine<float>(*this, values, source, [](float a, float b) { return std::max(a, b); });
}

std::vector<RankId> all_ranks(int count) {
  std::vector<RankId> ranks;
  ranks.reserve(static_cast<std::size_t>(count));
  for (int r = 0; r < count; ++r) ranks.emplace_back(r);
  return ranks;
}

}  // namespace meshwright
