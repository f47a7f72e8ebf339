#include "cli/sweep/points_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "cli/reports/report.hpp"
#include "core/base/json_value.hpp"
#include "core/formats/file.hpp"
#include "core/formats/plan.hpp"

namespace meshwright {
namespace {

using PointJson = nlohmann::ordered_json;

/// kMostSweepPoints lines of ten kilobytes.
constexpr std::size_t kLargestPointsFile = std::size_t{1} << 30;
constexpr std::size_t kMostProblems = 10'000;
constexpr std::int64_t kLongestPicoseconds = Ticks::max().value - 1;

std::vector<Diagnostic> read_problems(JsonObjectReader& reader) {
  std::vector<Diagnostic> found;
  reader.objects(
      "problems", JsonObjectReader::Presence::kOptional, kMostProblems, [&](JsonObjectReader& r) {
        found.push_back({.where = r.text("where"), .what = r.text("what"), .hint = r.text("hint")});
      });
  return found;
}

/// Without its strategy, which the study has.
SweepPoint read_point(JsonObjectReader& reader, std::vector<Diagnostic>& problems) {
  SweepPoint point;
  if (const JsonValue* plan = reader.optional("plan")) {
    PlanFigures figures = figures_from_json(*plan, reader.place_of("plan"), problems);
    figures.step_time = Ticks(reader.integer("step_time_ps", 0, kLongestPicoseconds));
    figures.period = Ticks(reader.integer("period_ps", 0, kLongestPicoseconds));
    point.figures = std::move(figures);
  }
  point.problems = read_problems(reader);
  point.has_failed = reader.boolean("failed", false);
  if (point.figures.has_value() != point.problems.empty())
    reader.note("plan", "expected either a plan or problems", "remove this line");
  return point;
}

[[noreturn]] void refuse_other_sweep(const std::string& where) {
  throw InputError(
      Diagnostic{where, "belongs to another sweep: its options, input files or version differ",
                 "remove the file, or write the results to another one"});
}

}  // namespace

std::string line_of(const std::string& key, std::size_t index, const SweepPoint& point) {
  PointJson json{{"sweep", key}, {"point", index}};
  if (point.figures) {
    json["step_time_ps"] = point.figures->step_time.value;
    json["period_ps"] = point.figures->period.value;
    json["plan"] = PointJson::parse(to_json(*point.figures, -1));
  } else {
    json["problems"] = PointJson::parse(problems_json(point.problems));
  }
  if (point.has_failed) json["failed"] = true;
  return json.dump();
}

std::size_t take_line(std::string_view line, const std::string& where, const std::string& key,
                      SweepStudy& study) {
  const JsonValue value = parse_json(line, where);
  std::vector<Diagnostic> problems;
  JsonObjectReader reader(value, where + "#", problems);
  const std::string sweep_key = reader.text("sweep");
  throw_if_any(problems);
  if (sweep_key != key) refuse_other_sweep(where);
  const auto last = static_cast<std::int64_t>(study.points.size()) - 1;
  const auto index = static_cast<std::size_t>(reader.integer("point", 0, last));
  SweepPoint point = read_point(reader, problems);
  reader.finish();
  throw_if_any(problems);
  point.strategy = study.points[index].strategy;
  study.points[index] = std::move(point);
  return index;
}

PointsFile::PointsFile(std::string path, std::string key)
    : path_(std::move(path)), key_(std::move(key)) {}

std::size_t PointsFile::read_into(SweepStudy& study) {
  if (!exists() || !std::filesystem::exists(path_)) return 0;
  const std::string text = read_file(path_, kLargestPointsFile);
  const std::size_t end = text.rfind('\n') + 1;  // 0: no complete line
  std::vector<bool> is_known(study.points.size());
  std::size_t number = 0;
  for (std::size_t begin = 0; begin < end;) {
    const std::size_t next = text.find('\n', begin);
    const std::string where = fmt::format("{}:{}", path_, ++number);
    is_known[take_line(std::string_view(text).substr(begin, next - begin), where, key_, study)] =
        true;
    begin = next + 1;
  }
  if (end < text.size()) {
    std::error_code error;
    std::filesystem::resize_file(path_, end, error);
    if (error) fail(error.value());
  }
  return static_cast<std::size_t>(std::count(is_known.begin(), is_known.end(), true));
}

void PointsFile::append(std::size_t index, const SweepPoint& point) {
  if (!exists() || point.has_failed) return;
  if (!file_) file_.reset(std::fopen(path_.c_str(), "a"));
  if (!file_) fail(errno);
  const std::string line = line_of(key_, index, point) + "\n";
  if (std::fwrite(line.data(), 1, line.size(), file_.get()) < line.size() ||
      std::fflush(file_.get()) != 0)
    fail(errno);
}

void PointsFile::remove() {
  if (!exists()) return;
  file_.reset();
  std::error_code ignored;  // the results are complete
  std::filesystem::remove(path_, ignored);
}

void PointsFile::fail(int error) const {
  throw RuntimeFailure(
      {path_, fmt::format("cannot write file: {}", std::generic_category().message(error)),
       "check the folder, its permissions and the free space on the disk"});
}

}  // namespace meshwright
