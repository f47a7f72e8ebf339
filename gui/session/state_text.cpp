#include "gui/session/state_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <algorithm>
#include <charconv>
#include <iterator>
#include <map>
#include <sstream>

#include "core/base/number_from_text.hpp"
#include "core/formats/file.hpp"
#include "core/formats/plan.hpp"
#include "core/schedule/schedule.hpp"
#include "gui/text/qstring_of.hpp"

namespace meshwright::gui {
namespace {

/// Keys of `strategy` in plan files are the flags with underscores instead of dashes.
std::string flag_of(const QString& key) {
  std::string flag = key.toStdString();
  std::replace(flag.begin(), flag.end(), '_', '-');
  return flag;
}
QString key_of(std::string_view flag) { return qstring_of(flag.substr(2)).replace('-', '_'); }

QJsonObject json_of(const Strategy& strategy) {
  return QJsonDocument::fromJson(QByteArray::fromStdString(to_json(strategy))).object();
}

std::string word_of(const QJsonValue& value) {
  return value.isDouble() ? fmt::format("{}", value.toDouble()) : value.toString().toStdString();
}

[[noreturn]] void refuse(std::string_view word, std::string what) {
  throw InputError(Diagnostic{std::string(word.substr(0, 60)), std::move(what),
                              "use a line copied with \"Copy as command line\""});
}

std::int64_t picoseconds(std::string_view text, std::string_view word) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  constexpr std::int64_t kLongest = std::int64_t{1} << 56;  // 20 hours
  if (error != std::errc() || std::string_view(end) != "ps" || value < 0 || value > kLongest)
    refuse(word, "expected a whole number of picoseconds, such as 1000000ps");
  return value;
}

std::string what_if_text(const WhatIf& w) {
  std::string text;
  const auto add = [&](const char* name, const std::optional<Ticks>& time) {
    if (time) text += fmt::format(" {}={}ps", name, time->value);
  };
  add("tF", w.forward);
  add("tB", w.backward_input);
  add("tW", w.backward_weight);
  add("tC", w.message);
  add("tO", w.optimizer);
  if (!w.slowness.empty()) text += fmt::format(" slow={}", fmt::join(w.slowness, ","));
  return text.empty() ? text : " #" + text;
}

void read_slowness(const std::string& word, std::string_view values, WhatIf& what_if) {
  constexpr std::size_t kMost = 4096;
  std::istringstream list{std::string(values)};
  list.imbue(std::locale::classic());
  for (std::string item; std::getline(list, item, ',');) {
    std::istringstream number(item);
    number.imbue(std::locale::classic());
    double factor = 0;
    if (!(number >> factor) || factor < 0.05 || factor > 20 || what_if.slowness.size() == kMost)
      refuse(word, "expected slowdown factors between 0.05 and 20");
    what_if.slowness.push_back(factor);
  }
}

void read_what_if(const std::string& word, WhatIf& what_if) {
  const std::size_t equals = word.find('=');
  if (equals == std::string::npos) refuse(word, "expected NAME=VALUE after the '#'");
  const std::string_view name = std::string_view(word).substr(0, equals);
  const std::string_view value = std::string_view(word).substr(equals + 1);
  if (name == "slow") return read_slowness(word, value, what_if);
  const Ticks time(picoseconds(value, word));
  if (name == "tF")
    what_if.forward = time;
  else if (name == "tB")
    what_if.backward_input = time;
  else if (name == "tW")
    what_if.backward_weight = time;
  else if (name == "tC")
    what_if.message = time;
  else if (name == "tO")
    what_if.optimizer = time;
  else
    refuse(word, "unknown name after the '#'; expected tF, tB, tW, tC, tO or slow");
}

/// Parsed as a plan file, so that its reader validates keys and values.
Strategy strategy_of(const QJsonObject& strategy) {
  const QJsonObject file{{"schema", 1},
                         {"model", QJsonObject{{"name", ""}, {"config", ""}}},
                         {"cluster", QJsonObject{{"name", ""}, {"toml", ""}}},
                         {"strategy", strategy},
                         {"blocks_per_stage", QJsonArray{1}},
                         {"predicted", QJsonValue()},
                         {"cost_model", ""}};
  return plan_file_from_json(QJsonDocument(file).toJson().toStdString(), "line").plan.strategy;
}

QJsonValue value_of(const std::string& word) {
  if (const auto number = number_from_text<double>(word)) return *number;
  return QString::fromStdString(word);
}

}  // namespace

std::string to_state_text(const Scenario& s) {
  const std::string model = s.model.where.starts_with("preset") ? s.model.name : s.model.where;
  const std::string cluster =
      s.cluster.where.starts_with("preset") ? s.cluster.name : s.cluster.where;
  std::string text = fmt::format("meshwright simulate --model {} --cluster {}", model, cluster);
  if (!s.calibration_file.empty()) text += " --calibration " + s.calibration_file;
  const QJsonObject usual = json_of(Strategy{});
  const QJsonObject all = json_of(s.strategy);
  for (auto entry = all.begin(); entry != all.end(); ++entry) {
    const bool is_needed = entry.key() == "global_batch" || entry.key() == "seq";
    if (!is_needed && usual.value(entry.key()) == entry.value()) continue;
    if (entry.value().isBool())
      text += (entry.value().toBool() ? " --" : " --no-") + flag_of(entry.key());
    else
      text += fmt::format(" --{} {}", flag_of(entry.key()), word_of(entry.value()));
  }
  return text + what_if_text(s.what_if);
}

namespace {

/// Lines from a README or a shell: without prompt, continuation marks and output options.
std::vector<std::string> words_of(std::string_view text) {
  std::istringstream stream{std::string(text)};
  std::vector<std::string> words;
  for (std::string word; stream >> word;) {
    if (word == "\\" || word == "$" || word == "--json" || word == "--all-ranks") continue;
    if (word == "-o" || word == "--output")
      stream >> word;
    else
      words.push_back(word);
  }
  return words;
}

/// `--gpus` gives the data-parallel size, as on the command line.
void divide_gpus(double gpus, Strategy& strategy) {
  ParallelDegrees& d = strategy.degrees;
  const std::int64_t of_replica = rank_count(d) / d.data;
  const auto all = static_cast<std::int64_t>(gpus);
  if (all <= 0 || all % of_replica != 0)
    refuse("--gpus",
           fmt::format("{} is not a multiple of the {} ranks of one replica", gpus, of_replica));
  d.data = static_cast<int>(all / of_replica);
}

}  // namespace

Scenario scenario_from_state_text(std::string_view text) {
  constexpr std::size_t kLongest = 1 << 16;
  if (text.size() > kLongest) refuse("line", "line is too long");
  const std::vector<std::string> words = words_of(text);
  Scenario s;
  QJsonObject strategy;
  std::map<QString, std::string> sources;
  const auto comment = std::find(words.begin(), words.end(), "#");
  for (auto word = words.begin(); word != comment; ++word) {
    if (word->ends_with(".json") && !word->starts_with("--")) {
      return scenario_of(plan_file_from_json(read_file(*word), *word));
    }
    if (!word->starts_with("--")) {
      if (*word != "meshwright" && *word != "simulate") refuse(*word, "unexpected argument");
      continue;
    }
    const QString key = key_of(*word);
    const bool has_value = word + 1 != comment && !(word + 1)->starts_with("--");
    if (!has_value) {
      strategy[key.startsWith("no_") ? key.mid(3) : key] = !key.startsWith("no_");
    } else if (key == "model" || key == "cluster" || key == "calibration") {
      sources[key] = *++word;
    } else {
      strategy[key] = value_of(*++word);
    }
  }
  if (comment != words.end())
    for (auto word = comment + 1; word != words.end(); ++word) read_what_if(*word, s.what_if);
  if (sources["model"].empty() || sources["cluster"].empty())
    refuse("line", "missing required option '--model' or '--cluster'");
  s.model = find_model(sources["model"]);
  s.cluster = find_cluster(sources["cluster"]);
  s.calibration_file = sources["calibration"];
  const QJsonValue gpus = strategy.take("gpus");
  if (const int chunks = strategy.value("vpp").toInt(1);
      chunks > 1 && !strategy.contains("schedule"))
    strategy["schedule"] = qstring_of(default_schedule(chunks));
  s.strategy = strategy_of(strategy);
  if (gpus.isDouble() && !strategy.contains("dp")) divide_gpus(gpus.toDouble(), s.strategy);
  return s;
}

}  // namespace meshwright::gui
