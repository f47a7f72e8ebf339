#include "core/formats/schedule_csv.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>

#include "core/base/check.hpp"
#include "core/base/error.hpp"
#include "core/base/number_from_text.hpp"

namespace meshwright {
namespace {

/// Limits far beyond real schedules.
constexpr int kMostCsvStages = 1 << 14;
constexpr int kMostCsvMicrobatches = 1 << 20;
constexpr std::size_t kLargestCsvFile = std::size_t{1} << 28;

constexpr std::string_view kOverlap = "OVERLAP_F_B";
const std::array<std::string, 12> kTypes{"F",      "I",       "W",       "B",
                                         "BW",     "UNSHARD", "RESHARD", "REDUCE_GRAD",
                                         "SEND_F", "RECV_F",  "SEND_B",  "RECV_B"};

struct Cell {
  std::string_view text;
  std::size_t line;
  std::size_t column;
};

/// Stage, type, micro-batch; UNSHARD and similar actions may have no micro-batch.
struct Word {
  Cell cell;
  int stage = 0;
  std::string_view type;
  std::optional<int> microbatch;
  bool overlaps_next = false;
};

/// Parses all words before converting them to actions, because the meaning of B depends on which
/// other types occur.
class CsvReader {
 public:
  CsvReader(std::string_view text, std::string_view file) : text_(text), file_(file) {}
  ImportedSchedule run(std::string_view name);

 private:
  [[noreturn]] void reject(const Cell& cell, std::string what, std::string hint) const;
  void read_rows();
  void read_cell(const Cell& cell, std::vector<Word>& row) const;
  void read_pair(const Cell& cell, std::vector<Word>& row) const;
  Word parse_word(const Cell& cell, std::string_view text) const;
  CsvDialect dialect() const;
  std::optional<Pass> pass_of(std::string_view type, CsvDialect dialect) const;
  void add_actions(Schedule& schedule, CsvDialect dialect);
  Placement placement() const;

  std::string_view text_;
  std::string_view file_;
  std::vector<std::vector<Word>> rows_;
  std::map<int, int> device_of_stage_;
  std::map<std::string_view, int> skipped_;  ///< number of ignored actions by type
};

void CsvReader::reject(const Cell& cell, std::string what, std::string hint) const {
  throw InputError(Diagnostic{.where = fmt::format("{}:{}, cell {}", file_, cell.line, cell.column),
                              .what = std::move(what),
                              .hint = std::move(hint)});
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r";
  const std::size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

Word CsvReader::parse_word(const Cell& cell, std::string_view text) const {
  const std::string_view whole = text.substr(0, 40);  // cells can have any length
  const auto stage = take_index(text);
  const std::string_view name = text.substr(0, text.find_first_of("0123456789"));
  text.remove_prefix(name.size());
  if (!stage || name.empty())
    reject(cell, fmt::format("invalid action '{}'", whole),
           "write stage, type, micro-batch, such as 0F12, or a pair such as "
           "(0F4;7B0)OVERLAP_F_B");
  if (std::find(kTypes.begin(), kTypes.end(), name) == kTypes.end())
    reject(cell, fmt::format("unknown type '{}' in '{}'", name.substr(0, 20), whole),
           suggest(name.substr(0, 20), kTypes));
  std::optional<int> microbatch;
  if (!text.empty()) {
    microbatch = take_index(text);
    if (!microbatch || !text.empty())
      reject(cell, fmt::format("invalid micro-batch in '{}'", whole),
             fmt::format("use a whole number from 0 to {}", kMostCsvMicrobatches - 1));
  }
  if (*stage >= kMostCsvStages)
    reject(cell,
           fmt::format("stage {} is out of range: expected 0 to {}", *stage, kMostCsvStages - 1),
           "number stages from 0");
  if (microbatch.value_or(0) >= kMostCsvMicrobatches)
    reject(cell,
           fmt::format("micro-batch {} is out of range: expected 0 to {}", *microbatch,
                       kMostCsvMicrobatches - 1),
           "number micro-batches from 0");
  return {.cell = cell, .stage = *stage, .type = name, .microbatch = microbatch};
}

void CsvReader::read_pair(const Cell& cell, std::vector<Word>& row) const {
  const std::size_t close = cell.text.find(')');
  const std::size_t middle = cell.text.find(';');
  if (close == std::string_view::npos || middle == std::string_view::npos || middle > close ||
      cell.text.substr(close + 1) != kOverlap)
    reject(cell, fmt::format("invalid pair '{}'", cell.text.substr(0, 40)),
           "write a pair as (0F4;7B0)OVERLAP_F_B");
  const std::array parts{cell.text.substr(1, middle - 1),
                         cell.text.substr(middle + 1, close - middle - 1)};
  for (std::size_t i = 0; i < parts.size(); ++i) {
    Word word = parse_word(cell, trimmed(parts[i]));
    if (word.type != "F" && word.type != "B" && word.type != "BW")
      reject(cell, fmt::format("{} cannot be part of a pair", word.type),
             "use one forward and one full backward");
    word.overlaps_next = i == 0;
    row.push_back(word);
  }
}

void CsvReader::read_cell(const Cell& cell, std::vector<Word>& row) const {
  if (cell.text.empty()) return;
  if (cell.text.front() == '(')
    read_pair(cell, row);
  else
    row.push_back(parse_word(cell, cell.text));
}

void CsvReader::read_rows() {
  std::string_view rest = text_;
  for (std::size_t number = 1; !rest.empty(); ++number) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    rows_.emplace_back();
    for (std::size_t column = 1;; ++column) {
      const std::size_t comma = line.find(',');
      read_cell({trimmed(line.substr(0, comma)), number, column}, rows_.back());
      if (comma == std::string_view::npos) break;
      line.remove_prefix(comma + 1);
    }
  }
  while (!rows_.empty() && rows_.back().empty()) rows_.pop_back();  // trailing blank lines
}

CsvDialect CsvReader::dialect() const {
  bool has_input = false;
  bool has_weight = false;
  for (const auto& row : rows_)
    for (const Word& word : row) {
      if (word.type == "BW") return CsvDialect::kOld;
      has_input |= word.type == "I";
      has_weight |= word.type == "W";
    }
  return has_weight && !has_input ? CsvDialect::kOld : CsvDialect::kCurrent;
}

std::optional<Pass> CsvReader::pass_of(std::string_view type, CsvDialect dialect) const {
  if (type == "F") return Pass::kForward;
  if (type == "I") return Pass::kBackwardInput;
  if (type == "W") return Pass::kBackwardWeight;
  if (type == "BW") return Pass::kBackward;
  if (type == "B") return dialect == CsvDialect::kOld ? Pass::kBackwardInput : Pass::kBackward;
  return std::nullopt;
}

void CsvReader::add_actions(Schedule& schedule, CsvDialect dialect) {
  for (std::size_t device = 0; device < rows_.size(); ++device) {
    auto& order = schedule.orders.emplace_back();
    for (const Word& word : rows_[device]) {
      const auto pass = pass_of(word.type, dialect);
      if (!pass) {
        ++skipped_[word.type];
        continue;
      }
      if (!word.microbatch)
        reject(word.cell, fmt::format("missing micro-batch in '{}{}'", word.stage, word.type),
               fmt::format("write {}{}0 for micro-batch 0", word.stage, word.type));
      if (word.type == "I" && dialect == CsvDialect::kOld)
        reject(word.cell, "I and BW cannot be combined in one file",
               "use either I, W and B, or B, W and BW");
      const auto [known, is_new] = device_of_stage_.emplace(word.stage, static_cast<int>(device));
      if (!is_new && known->second != static_cast<int>(device))
        reject(word.cell,
               fmt::format("stage {} occurs on device {} and on device {}", word.stage,
                           known->second, device),
               "put all actions of a stage into one row");
      schedule.microbatch_count = std::max(schedule.microbatch_count, *word.microbatch + 1);
      order.push_back(
          {StageId(word.stage), *pass, MicrobatchId(*word.microbatch), word.overlaps_next});
    }
    if (order.empty())
      throw InputError(Diagnostic{.where = fmt::format("{}:{}", file_, device + 1),
                                  .what = fmt::format("device {} has no actions", device),
                                  .hint = "write one row per device, without blank lines"});
  }
}

Placement CsvReader::placement() const {
  Placement placement;
  placement.devices = static_cast<int>(rows_.size());
  placement.routes.emplace_back();
  for (const auto& [stage, device] : device_of_stage_) {
    const auto expected = static_cast<int>(placement.device_of_stage.size());
    if (stage != expected)
      throw InputError(Diagnostic{
          .where = std::string(file_),
          .what = fmt::format("stage {} is missing, but stage {} occurs", expected, stage),
          .hint = "number stages 0, 1, 2, ..."});
    placement.device_of_stage.emplace_back(device);
    placement.part_of_stage.push_back(stage);
    placement.routes[0].emplace_back(stage);
  }
  return placement;
}

ImportedSchedule CsvReader::run(std::string_view name) {
  if (text_.size() > kLargestCsvFile)
    throw InputError(
        Diagnostic{.where = std::string(file_),
                   .what = fmt::format("exceeds the size limit of {} bytes", kLargestCsvFile),
                   .hint = "check that this is the right file"});
  read_rows();
  ImportedSchedule result;
  result.dialect = dialect();
  result.schedule.name = name;
  add_actions(result.schedule, result.dialect);
  if (result.schedule.microbatch_count == 0)
    throw InputError(Diagnostic{.where = std::string(file_),
                                .what = "no actions found",
                                .hint = "write one row per device, such as 0F0,0F1,0B0,0B1"});
  result.schedule.placement = placement();
  result.schedule.route_of_microbatch.assign(
      static_cast<std::size_t>(result.schedule.microbatch_count), 0);
  for (const auto& [type, count] : skipped_)
    result.notes.push_back(fmt::format(
        "ignored {} x {}: communication is derived from the order of the passes", count, type));
  return result;
}

/// Writes the cells of one device.
class CsvWriter {
 public:
  CsvWriter(const Schedule& schedule, CsvContent content, CsvDialect dialect)
      : schedule_(schedule), content_(content), dialect_(dialect) {}

  void write_row(std::span<const Action> order, fmt::memory_buffer& out) const {
    bool first = true;
    const auto cell = [&](const std::string& text) {
      fmt::format_to(std::back_inserter(out), "{}{}", first ? "" : ",", text);
      first = false;
    };
    for (std::size_t i = 0; i < order.size(); ++i) {
      const std::size_t count = order[i].overlaps_next && i + 1 < order.size() ? 2 : 1;
      const auto together = order.subspan(i, count);
      for (const Action& a : together)
        if (const auto text = message(a, false)) cell(*text);
      cell(count == 2 ? fmt::format("({};{}){}", word(together[0]), word(together[1]), kOverlap)
                      : word(together[0]));
      for (const Action& a : together)
        if (const auto text = message(a, true)) cell(*text);
      i += count - 1;
    }
    out.push_back('\n');
  }

 private:
  std::string word(const Action& a) const {
    std::string type(1, letter_of(a.pass));
    if (dialect_ == CsvDialect::kOld && a.pass == Pass::kBackwardInput) type = "B";
    if (dialect_ == CsvDialect::kOld && a.pass == Pass::kBackward) type = "BW";
    return fmt::format("{}{}{}", a.stage.value, type, a.microbatch.value);
  }

  /// The receive before or the send after `a`; empty at the ends of the route, for weight
  /// gradients, and between stages of one device.
  std::optional<std::string> message(const Action& a, bool send) const {
    if (content_ == CsvContent::kComputeOnly || a.pass == Pass::kBackwardWeight)
      return std::nullopt;
    const bool forward = a.pass == Pass::kForward;
    const int other = a.stage.value + (forward == send ? 1 : -1);
    const auto& devices = schedule_.placement.device_of_stage;
    if (other < 0 || other >= static_cast<int>(devices.size())) return std::nullopt;
    if (devices[static_cast<std::size_t>(other)] == devices[a.stage.index()]) return std::nullopt;
    return fmt::format("{}{}_{}{}", a.stage.value, send ? "SEND" : "RECV", forward ? 'F' : 'B',
                       a.microbatch.value);
  }

  const Schedule& schedule_;
  CsvContent content_;
  CsvDialect dialect_;
};

[[noreturn]] void cannot_say(const Schedule& schedule, std::string what) {
  throw InputError(Diagnostic{
      .where = fmt::format("schedule {}", schedule.name),
      .what = std::move(what),
      .hint = "use a schedule with a single route, no sequence slices and an unsharded output "
              "layer, such as 1f1b"});
}

}  // namespace

ImportedSchedule read_schedule_csv(std::string_view text, std::string_view name,
                                   std::string_view file) {
  return CsvReader(text, file).run(name);
}

std::string write_schedule_csv(const Schedule& schedule, CsvContent content, CsvDialect dialect) {
  if (schedule.placement.routes.size() != 1)
    cannot_say(schedule, fmt::format("{} routes of micro-batches are not expressible in PyTorch's "
                                     "CSV",
                                     schedule.placement.routes.size()));
  if (schedule.slices_per_microbatch != 1)
    cannot_say(schedule,
               fmt::format("sequence slices ({} per micro-batch) are not expressible in PyTorch's "
                           "CSV",
                           schedule.slices_per_microbatch));
  if (schedule.output_barriers > 0)
    cannot_say(schedule, "a sharded output layer (S and T) is not expressible in PyTorch's CSV");
  fmt::memory_buffer out;
  const CsvWriter writer(schedule, content, dialect);
  for (const auto& order : schedule.orders) writer.write_row(order, out);
  return fmt::to_string(out);
}

}  // namespace meshwright
