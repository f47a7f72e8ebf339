#include "core/plan/data_parallelism.hpp"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "core/base/number_from_text.hpp"
#include "core/base/value_named.hpp"

namespace meshwright {
namespace {

constexpr std::array<std::string_view, kDataParallelKindCount> kKindNames{
    "collective", "ring", "parameter-server", "async-parameter-server", "one-process"};

/// By BucketRule; buckets of a size are written as that size.
constexpr std::array<std::string_view, 4> kRuleNames{"none", "", "pytorch", "megatron"};

/// A whole number of bytes, optionally with a binary or decimal unit.
std::optional<Bytes> size_from_text(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, std::int64_t>, 7> kUnits{
      {{"KiB", std::int64_t{1} << 10},
       {"MiB", std::int64_t{1} << 20},
       {"GiB", std::int64_t{1} << 30},
       {"KB", 1'000},
       {"MB", 1'000'000},
       {"GB", 1'000'000'000},
       {"B", 1}}};
  constexpr std::int64_t kLargest = std::int64_t{1} << 40;
  std::int64_t unit = 1;
  for (const auto& [name, bytes] : kUnits)
    if (text.ends_with(name)) {
      unit = bytes;
      text.remove_suffix(name.size());
      break;
    }
  while (text.ends_with(' ')) text.remove_suffix(1);
  const auto count = number_from_text<std::int64_t>(text);
  if (!count || *count < 1 || *count > kLargest / unit) return std::nullopt;
  return Bytes(*count * unit);
}

}  // namespace

std::string_view name_of(DataParallelKind kind) {
  return kKindNames[static_cast<std::size_t>(kind)];
}

std::optional<DataParallelKind> data_parallel_from_name(std::string_view name) {
  return value_named<DataParallelKind>(name, kDataParallelKindCount);
}

std::string to_text(const GradientBuckets& buckets) {
  if (buckets.rule != BucketRule::kBytes) return std::string(entry_of(kRuleNames, buckets.rule));
  constexpr std::int64_t kMebibyte = std::int64_t{1} << 20;
  if (buckets.bytes.value % kMebibyte == 0)
    return fmt::format("{}MiB", buckets.bytes.value / kMebibyte);
  return fmt::format("{}", buckets.bytes.value);
}

std::optional<GradientBuckets> buckets_from_text(std::string_view text) {
  for (const BucketRule rule : {BucketRule::kNone, BucketRule::kPyTorch, BucketRule::kMegatron})
    if (text == entry_of(kRuleNames, rule)) return GradientBuckets{rule, {}};
  const std::optional<Bytes> size = size_from_text(text);
  if (!size) return std::nullopt;
  return GradientBuckets{BucketRule::kBytes, *size};
}

std::string_view name_of(RingOrder order) {
  return order == RingOrder::kNeighbors ? "neighbours" : "alternating";
}

std::optional<RingOrder> ring_order_from_name(std::string_view name) {
  return value_named<RingOrder>(name, kRingOrderCount);
}

}  // namespace meshwright
