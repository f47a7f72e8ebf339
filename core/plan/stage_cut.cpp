#include "core/plan/stage_cut.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/base/check.hpp"
#include "core/base/error.hpp"
#include "core/base/number_from_text.hpp"

namespace meshwright {
namespace {

constexpr std::string_view kUniformName = "uniform", kBalancedName = "balanced";
constexpr int kMostBlocks = 1 << 16;

std::optional<int> block_count_from_text(std::string_view text) {
  const auto value = number_from_text<int>(text);
  return value && *value >= 0 && *value <= kMostBlocks ? value : std::nullopt;
}

/// "first=3", "last=2", "embedding" or "loss", each at most once.
bool read_option(std::string_view option, StageCut& cut) {
  const auto read_count = [&](std::string_view name, std::optional<int>& count) {
    if (!option.starts_with(name) || count) return false;
    count = block_count_from_text(option.substr(name.size()));
    return count.has_value();
  };
  const auto read_flag = [&](std::string_view name, bool& flag) {
    if (option != name || flag) return false;
    return flag = true;
  };
  return read_count("first=", cut.first) || read_count("last=", cut.last) ||
         read_flag("embedding", cut.embedding) || read_flag("loss", cut.loss);
}

/// Blocks per pipeline rank, with the embedding and the loss if they count as blocks.
std::vector<int> blocks_of_ranks(const StageCut& cut, int blocks, int ranks,
                                 std::string_view where) {
  const int fixed = (cut.first ? 1 : 0) + (cut.last ? 1 : 0);
  const int others = ranks - fixed;
  const int added = (cut.embedding ? 1 : 0) + (cut.loss ? 1 : 0);
  const int shared = blocks + added - cut.first.value_or(0) - cut.last.value_or(0);
  if (others < 0 || shared < 0 || (others == 0 ? shared != 0 : shared % others != 0))
    throw InputError(Diagnostic{
        .where = std::string(where),
        .what = fmt::format("'{}' cannot divide {} blocks evenly over {} pipeline ranks",
                            to_text(cut), blocks, ranks),
        .hint =
            "use balanced, uniform:embedding,loss, uniform:first=N,last=N, or a list of counts"});
  std::vector<int> counts(static_cast<std::size_t>(ranks), others > 0 ? shared / others : 0);
  if (cut.first) counts.front() = *cut.first;
  if (cut.last) counts.back() = *cut.last;
  return counts;
}

}  // namespace

std::optional<StageCut> stage_cut_from_text(std::string_view text) {
  if (text == kBalancedName) return StageCut{.rule = StageCutRule::kBalanced};
  if (!text.starts_with(kUniformName)) return std::nullopt;
  text.remove_prefix(kUniformName.size());
  StageCut cut;
  if (text.empty()) return cut;
  if (text.front() != ':') return std::nullopt;
  for (std::size_t begin = 1; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    if (!read_option(text.substr(begin, end - begin), cut)) return std::nullopt;
    begin = end + 1;
  }
  if ((cut.first || cut.last) && (cut.embedding || cut.loss)) return std::nullopt;
  return cut;
}

std::string to_text(const StageCut& cut) {
  if (cut.rule == StageCutRule::kBalanced) return std::string(kBalancedName);
  std::vector<std::string> options;
  if (cut.first) options.push_back(fmt::format("first={}", *cut.first));
  if (cut.last) options.push_back(fmt::format("last={}", *cut.last));
  if (cut.embedding) options.emplace_back("embedding");
  if (cut.loss) options.emplace_back("loss");
  return options.empty() ? std::string(kUniformName)
                         : fmt::format("{}:{}", kUniformName, fmt::join(options, ","));
}

std::vector<int> cut_uniformly(const StageCut& cut, int blocks, const Placement& placement,
                               std::string_view where) {
  MW_CHECK(cut.rule == StageCutRule::kUniform);
  const std::vector<StageId>& route = placement.routes.front();
  const std::vector<int> ranks = blocks_of_ranks(cut, blocks, placement.devices, where);
  const int chunks = std::max(1, static_cast<int>(route.size()) / placement.devices);
  std::vector<int> parts(route.size());
  for (const StageId stage : route) {
    const int of_rank = ranks[placement.device_of_stage[stage.index()].index()];
    if (of_rank % chunks != 0)
      throw InputError(Diagnostic{
          .where = std::string(where),
          .what = fmt::format("'{}' gives pipeline rank {} {} blocks, which its {} chunks cannot "
                              "share evenly",
                              to_text(cut), placement.device_of_stage[stage.index()].value, of_rank,
                              chunks),
          .hint = "use balanced, another --vpp, or a list of counts"});
    parts[static_cast<std::size_t>(placement.part_of_stage[stage.index()])] = of_rank / chunks;
  }
  if (cut.embedding) --parts.front();
  if (cut.loss) --parts.back();
  return parts;
}

}  // namespace meshwright
