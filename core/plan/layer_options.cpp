#include "core/plan/layer_options.hpp"

#include <algorithm>

#include "core/base/index_range.hpp"
#include "core/base/number_from_text.hpp"
#include "core/base/split_at.hpp"

namespace meshwright {
namespace {

constexpr char kBetweenEntries = '+';
constexpr std::string_view kRecomputePrefix = "recompute=";
constexpr std::string_view kReshardPrefix = "fsdp-reshard=";
constexpr std::string_view kTensorPrefix = "tp=";
constexpr std::string_view kYes = "yes", kNo = "no";
constexpr std::size_t kMostEntries = 1 << 16;

std::string text_of(const Recompute& recompute) {
  return std::string(kRecomputePrefix) + to_text(recompute);
}
std::string text_of(bool reshard) {
  return std::string(kReshardPrefix) + std::string(reshard ? kYes : kNo);
}

std::string text_of(int tensor) { return std::string(kTensorPrefix) + std::to_string(tensor); }

template <class Value>
void append(std::string& text, const std::vector<OfBlocks<Value>>& values) {
  for (const OfBlocks<Value>& of : values) {
    if (!text.empty()) text += kBetweenEntries;
    text += to_text(IndexRange{of.first, of.last}) + ":" + text_of(of.value);
  }
}

bool take_prefix(std::string_view& rest, std::string_view prefix) {
  if (!rest.starts_with(prefix)) return false;
  rest.remove_prefix(prefix.size());
  return true;
}

bool read_entry(std::string_view entry, LayerOptions& options) {
  const std::optional<IndexRange> blocks = take_index_range(entry);
  if (!blocks) return false;
  const auto& [first, last] = *blocks;
  if (take_prefix(entry, kRecomputePrefix)) {
    const std::optional<Recompute> value = recompute_from_text(entry);
    if (!value || value->kind == RecomputeKind::kBlocks) return false;
    options.recompute.push_back({first, last, *value});
    return true;
  }
  if (take_prefix(entry, kTensorPrefix)) {
    const std::optional<int> value = number_from_text<int>(entry);
    if (value) options.tensor.push_back({first, last, *value});
    return value.has_value();
  }
  if (!take_prefix(entry, kReshardPrefix) || (entry != kYes && entry != kNo)) return false;
  options.reshard_after_forward.push_back({first, last, entry == kYes});
  return true;
}

template <class Value>
void sort_by_blocks(std::vector<OfBlocks<Value>>& values) {
  std::ranges::stable_sort(values, {}, &OfBlocks<Value>::first);
}

}  // namespace

std::string to_text(const LayerOptions& options) {
  std::string text;
  append(text, options.recompute);
  append(text, options.reshard_after_forward);
  append(text, options.tensor);
  return text;
}

std::optional<LayerOptions> layer_options_from_text(std::string_view text) {
  LayerOptions options;
  if (text.empty()) return options;
  const std::vector<std::string_view> entries = split_at(text, kBetweenEntries);
  if (entries.size() > kMostEntries) return std::nullopt;
  for (const std::string_view entry : entries)
    if (!read_entry(entry, options)) return std::nullopt;
  sort_by_blocks(options.recompute);
  sort_by_blocks(options.reshard_after_forward);
  sort_by_blocks(options.tensor);
  return options;
}

}  // namespace meshwright
