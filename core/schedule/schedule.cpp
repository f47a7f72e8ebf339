#include "core/schedule/schedule.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "core/base/check.hpp"
#include "core/base/error.hpp"
#include "core/base/number_from_text.hpp"
#include "core/base/value_named.hpp"

namespace meshwright {

constexpr std::array kLetters{'F', 'B', 'I', 'W', 'S', 'T'};  // in the order of Pass

char letter_of(Pass pass) { return entry_of(kLetters, pass); }

namespace {

/// A single route through all stages; stage s holds model part s.
Placement one_way(int devices, std::vector<PipelineRankId> device_of_stage) {
  Placement placement;
  placement.devices = devices;
  placement.device_of_stage = std::move(device_of_stage);
  placement.routes.emplace_back();
  for (std::size_t s = 0; s < placement.device_of_stage.size(); ++s) {
    placement.part_of_stage.push_back(static_cast<int>(s));
    placement.routes[0].emplace_back(s);
  }
  return placement;
}

}  // namespace

Placement looped_placement(int devices, int chunks) {
  MW_CHECK(devices >= 1 && chunks >= 1);
  std::vector<PipelineRankId> device_of_stage;
  for (int c = 0; c < chunks; ++c)
    for (int d = 0; d < devices; ++d) device_of_stage.emplace_back(d);
  return one_way(devices, std::move(device_of_stage));
}

Placement wave_placement(int devices, int chunks) {
  MW_CHECK(devices >= 1 && chunks >= 1);
  std::vector<PipelineRankId> device_of_stage;
  for (int c = 0; c < chunks; ++c)
    for (int d = 0; d < devices; ++d)
      device_of_stage.emplace_back(c % 2 == 0 ? d : devices - 1 - d);
  return one_way(devices, std::move(device_of_stage));
}

Placement bidirectional_placement(int devices) {
  Placement placement = wave_placement(devices, 2);
  const auto p = static_cast<std::size_t>(devices);
  const std::vector<StageId> all = placement.routes[0];
  placement.routes = {{all.begin(), all.begin() + devices}, {all.begin() + devices, all.end()}};
  for (std::size_t s = p; s < 2 * p; ++s) placement.part_of_stage[s] -= devices;
  return placement;
}

std::string to_text(std::span<const Action> order) {
  fmt::memory_buffer text;
  bool inside_pair = false;
  for (const Action& a : order) {
    if (text.size() > 0 && !inside_pair) text.push_back(' ');
    if (a.overlaps_next) text.push_back('(');
    fmt::format_to(std::back_inserter(text), "{}{}{}", a.stage.value, letter_of(a.pass),
                   a.microbatch.value);
    if (inside_pair) text.push_back(')');
    if (a.overlaps_next) text.push_back(';');
    inside_pair = a.overlaps_next;
  }
  return fmt::to_string(text);
}

namespace {

constexpr std::string_view kActionHint =
    "write stage, letter (F, B, I, W, S or T), micro-batch, such as 0F12, or a pair (0F4;7B0)";

[[noreturn]] void reject_word(std::string_view word, std::size_t position, std::string_view why) {
  throw InputError(Diagnostic{
      .where = fmt::format("action {}", position),
      .what = fmt::format("{} '{}'", why, word.substr(0, 40)),  // words can have any length
      .hint = std::string(kActionHint)});
}

std::optional<Pass> pass_of(char letter) {
  const auto* const at = std::find(kLetters.begin(), kLetters.end(), letter);
  if (at == kLetters.end()) return std::nullopt;
  return static_cast<Pass>(at - kLetters.begin());
}

std::optional<Action> parse_action(std::string_view text) {
  const auto stage = take_index(text);
  if (!stage || text.empty()) return std::nullopt;
  const auto pass = pass_of(text.front());
  text.remove_prefix(1);
  const auto microbatch = take_index(text);
  if (!pass || !microbatch || !text.empty()) return std::nullopt;
  return Action{.stage = StageId(*stage), .pass = *pass, .microbatch = MicrobatchId(*microbatch)};
}

void parse_pair(std::string_view word, std::size_t position, std::vector<Action>& order) {
  const std::size_t middle = word.find(';');
  if (word.back() != ')' || middle == std::string_view::npos)
    reject_word(word, position, "invalid pair of actions");
  auto first = parse_action(word.substr(1, middle - 1));
  const auto second = parse_action(word.substr(middle + 1, word.size() - middle - 2));
  if (!first || !second) reject_word(word, position, "invalid pair of actions");
  first->overlaps_next = true;
  order.push_back(*first);
  order.push_back(*second);
}

}  // namespace

std::vector<Action> order_from_text(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n";
  std::vector<Action> order;
  std::size_t position = 0;
  while (true) {
    text.remove_prefix(std::min(text.find_first_not_of(kBlank), text.size()));
    if (text.empty()) return order;
    const std::string_view word = text.substr(0, text.find_first_of(kBlank));
    text.remove_prefix(word.size());
    ++position;
    if (word.front() == '(') {
      parse_pair(word, position, order);
    } else if (const auto action = parse_action(word)) {
      order.push_back(*action);
    } else {
      reject_word(word, position, "invalid action");
    }
  }
}

std::vector<int> peak_held_microbatches(const Schedule& schedule) {
  std::vector<int> peaks;
  for (const auto& order : schedule.orders) {
    int held = 0;
    int peak = 0;
    for (const Action& a : order) {
      // The forward of a pair acquires its activation before the backward releases one.
      if (a.overlaps_next && a.pass != Pass::kForward) peak = std::max(peak, held + 1);
      if (a.pass == Pass::kForward) peak = std::max(peak, ++held);
      if (a.pass == Pass::kBackward || a.pass == Pass::kBackwardWeight) --held;
    }
    peaks.push_back(peak);
  }
  return peaks;
}

}  // namespace meshwright
