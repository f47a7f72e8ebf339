#include <algorithm>
#include <array>

#include "models/import/import_lines.hpp"
#include "models/import/megatron_options.hpp"

namespace meshwright {
namespace {

constexpr std::size_t kLongestExpansion = 1 << 16;
constexpr int kDeepestNesting = 16;

/// Text with repetition, "(tt|)*29" or "t*3": expands it; empty optional if it is malformed or
/// grows without limit.
class RepeatedText {
 public:
  explicit RepeatedText(std::string_view text) : text_(text) {}
  std::optional<std::string> expand() {
    const std::optional<std::string> result = sequence(0);
    return at_ == text_.size() ? result : std::nullopt;
  }

 private:
  std::optional<std::string> sequence(int depth) {
    std::string result;
    while (at_ < text_.size() && text_[at_] != ')') {
      std::optional<std::string> item = one(depth);
      if (!item) return std::nullopt;
      std::size_t times = 1;
      if (at_ < text_.size() && text_[at_] == '*') {
        ++at_;
        std::string digits;
        while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') digits += text_[at_++];
        const auto number = whole_number(digits);
        if (!number || *number > static_cast<std::int64_t>(kLongestExpansion)) return std::nullopt;
        times = static_cast<std::size_t>(*number);
      }
      if (result.size() + times * item->size() > kLongestExpansion) return std::nullopt;
      for (std::size_t i = 0; i < times; ++i) result += *item;
    }
    return result;
  }
  std::optional<std::string> one(int depth) {
    if (text_[at_] != '(') return std::string(1, text_[at_++]);
    if (depth >= kDeepestNesting) return std::nullopt;
    ++at_;
    std::optional<std::string> inner = sequence(depth + 1);
    if (at_ >= text_.size()) return std::nullopt;
    ++at_;
    return inner;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

/// "[0,0,1]*2+[1]" → "0 0 1 …": every list in brackets becomes a group.
std::string without_list_marks(std::string_view pattern) {
  std::string text;
  for (const char c : pattern) {
    if (c == '[') text += '(';
    if (c == ']') text += ')';
    if (c == '(' || c == ')' || c == '*' || (c >= '0' && c <= '9')) text += c;
  }
  return text;
}

constexpr std::array<std::string_view, 42> kRelevantOptions{
    "account-for-embedding-in-pipeline-split",
    "cpu-offloading-num-layers",
    "cross-entropy-fusion-impl",
    "cross-entropy-loss-fusion",
    "cuda-graph-impl",
    "cuda-graph-modules",
    "cuda-graph-scope",
    "data-parallel-random-init",
    "ddp-average-in-collective",
    "ddp-num-buckets",
    "ddp-reduce-scatter-with-fp32-accumulation",
    "defer-embedding-wgrad-compute",
    "delay-wgrad-compute",
    "distribute-saved-activations",
    "enable-cuda-graph",
    "exp-avg-dtype",
    "exp-avg-sq-dtype",
    "external-cuda-graph",
    "fine-grained-activation-offloading",
    "fsdp-double-buffer",
    "hierarchical-context-parallel-sizes",
    "main-grads-dtype",
    "main-params-dtype",
    "manual-gc",
    "microbatch-group-size-per-virtual-pipeline-stage",
    "moe-enable-deepep",
    "moe-permute-fusion",
    "moe-router-fusion",
    "moe-shared-expert-overlap",
    "moe-token-dispatcher-type",
    "mtp-num-layers",
    "no-bias-dropout-fusion",
    "no-bias-swiglu-fusion",
    "no-gradient-accumulation-fusion",
    "no-masked-softmax-fusion",
    "no-overlap-p2p-communication",
    "no-persist-layer-norm",
    "no-rope-fusion",
    "optimizer",
    "overlap-param-gather-with-optimizer-step",
    "rampup-batch-size",
    "transformer-impl"};

}  // namespace

std::vector<int> layers_of_layout(std::string_view layout) {
  std::string text;
  for (const char c : layout)
    if (c != ',' && c != ' ') text += c;
  const std::optional<std::string> expanded = RepeatedText(text).expand();
  if (!expanded || expanded->empty()) return {};
  std::vector<int> layers{0};
  for (const char c : *expanded) {
    if (c == '|')
      layers.push_back(0);
    else if (c == 't')
      ++layers.back();
    else if (c != 'E' && c != 'L' && c != 'm')
      return {};
  }
  return layers;
}

std::vector<bool> layers_of_pattern(std::string_view pattern, std::int64_t layers) {
  std::vector<bool> result;
  if (const auto every = whole_number(pattern); every && *every > 0) {
    for (std::int64_t i = 0; i < layers; ++i) result.push_back(i % *every == 0);
    return result;
  }
  const std::optional<std::string> expanded = RepeatedText(without_list_marks(pattern)).expand();
  if (!expanded || expanded->size() != static_cast<std::size_t>(layers)) return {};
  for (const char c : *expanded) result.push_back(c != '0');
  return result;
}

bool affects_time_or_memory(std::string_view option) {
  return std::ranges::find(kRelevantOptions, option) != kRelevantOptions.end();
}

}  // namespace meshwright
