#include "models/load/published_runs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "core/base/parse_quantity.hpp"
#include "core/formats/plan.hpp"
#include "models/load/load.hpp"
#include "models/load/trainer_toml.hpp"
#include "models/text/embedded_toml.hpp"
#include "models/text/presets.hpp"
#include "models/text/toml_reader.hpp"

namespace meshwright {
namespace {

constexpr int kSchemaOfRuns = 1;
constexpr std::size_t kMostRuns = 100'000;
constexpr int kMostGpusOfRun = 1 << 24;
constexpr int kMostBlocks = 1 << 20;
constexpr std::string_view kOutOfMemory = "oom";
constexpr std::string_view kUniform = "uniform";

constexpr std::array<std::string_view, 3> kMemoryNames{"allocated", "reserved", "device"};

/// All keys of a run that are not keys of its strategy.
const std::vector<std::string>& run_keys() {
  static const std::vector<std::string> keys{
      "id",        "model",         "cluster",       "gpus",   "trainer",     "blocks_per_stage",
      "step_time", "step_time_p10", "step_time_p90", "memory", "memory_kind", "assumed",
      "trap",      "note",          "group",         "where"};
  return keys;
}

bool is_run_key(std::string_view key) {
  const std::vector<std::string>& keys = run_keys();
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

std::vector<std::string> names_of(std::span<const EmbeddedText> presets) {
  std::vector<std::string> names;
  for (const EmbeddedText& preset : presets) names.emplace_back(preset.name);
  return names;
}

/// Keys of one run: its own, else those of `defaults`.
class RunReader {
 public:
  RunReader(const toml::table& run, const toml::table& defaults, std::string path,
            TomlFindings& findings)
      : run_(run),
        defaults_(defaults),
        of_run_(run, std::move(path), findings),
        of_defaults_(defaults, "defaults", findings),
        findings_(findings) {}

  const toml::node* find(std::string_view key) const {
    const toml::node* node = run_.get(key);
    return node != nullptr ? node : defaults_.get(key);
  }
  TomlReader& reader_of(std::string_view key) {
    return run_.contains(key) || !defaults_.contains(key) ? of_run_ : of_defaults_;
  }
  std::string text(std::string_view key) { return reader_of(key).text(key); }
  std::string text(std::string_view key, const std::string& absent) {
    return reader_of(key).text(key, absent);
  }
  void complain(std::string_view key, std::string what, std::string hint) {
    reader_of(key).complain(key, std::move(what), std::move(hint));
  }
  std::string where(std::string_view key) const {
    const toml::node* node = find(key);
    return findings_.where(node != nullptr ? *node : run_);
  }
  TomlFindings& findings() { return findings_; }

  /// The strategy's keys as an object of JSON, those of the run first.
  JsonObject strategy_keys() const {
    JsonObject members;
    for (const toml::table* table : {&run_, &defaults_})
      for (const auto& [key, value] : *table)
        if (!is_run_key(key.str()) && (table == &run_ || !run_.contains(key.str())))
          members.push_back({std::string(key.str()), json_value_of(value)});
    return members;
  }
  std::map<std::string, std::string, std::less<>> positions() const {
    std::map<std::string, std::string, std::less<>> result{{"", findings_.where(run_)}};
    for (const toml::table* table : {&run_, &defaults_})
      for (const auto& [key, value] : *table)
        result.try_emplace(std::string(key.str()), findings_.where(value));
    return result;
  }

 private:
  const toml::table& run_;
  const toml::table& defaults_;
  TomlReader of_run_, of_defaults_;
  TomlFindings& findings_;
};

/// Moves the problems of a strategy from "/KEY" to the position of the key.
void add_at_positions(const std::vector<Diagnostic>& problems, const RunReader& reader,
                      std::vector<Diagnostic>& complaints) {
  for (Diagnostic problem : problems) {
    const std::string key = problem.where.substr(problem.where.rfind('/') + 1);
    problem.what = fmt::format("{}: {}", key, problem.what);
    if (problem.what.find("unknown key") != std::string::npos)
      if (const auto near = nearest_names(key, run_keys(), 1); !near.empty())
        problem.hint = fmt::format("did you mean '{}'?", near.front());
    problem.where = reader.where(key);
    complaints.push_back(std::move(problem));
  }
}

const JsonMember* member_of(const JsonObject& object, std::string_view key) {
  const auto found =
      std::find_if(object.begin(), object.end(), [&](const JsonMember& m) { return m.key == key; });
  return found == object.end() ? nullptr : &*found;
}

/// As the command line does: schedules with chunks are interleaved, and data parallelism uses the
/// GPUs that the other axes leave.
Strategy read_strategy_of_run(RunReader& reader) {
  JsonObject keys = reader.strategy_keys();
  const bool says_data = member_of(keys, "dp") != nullptr;
  const JsonMember* chunks = member_of(keys, "vpp");
  const auto* chunk_count = chunks != nullptr ? chunks->value.as<std::int64_t>() : nullptr;
  if (member_of(keys, "schedule") == nullptr && chunk_count != nullptr && *chunk_count > 1)
    keys.push_back({"schedule", {std::string("interleaved-1f1b")}});
  std::vector<Diagnostic> problems;
  Strategy strategy = strategy_from_json({std::move(keys)}, "", problems);
  std::vector<Diagnostic>& complaints = reader.findings().complaints;
  add_at_positions(problems, reader, complaints);
  const std::size_t before = complaints.size();
  const int gpus = reader.reader_of("gpus").whole_number("gpus", 1, kMostGpusOfRun);
  if (!problems.empty() || complaints.size() > before) return strategy;
  ParallelDegrees& degrees = strategy.degrees;
  if (!says_data) degrees.data = 1;
  const std::int64_t others = rank_count(degrees);
  if (says_data ? others != gpus : gpus % others != 0)
    reader.complain(
        "gpus",
        fmt::format("'gpus = {}' does not match the parallel sizes, whose product is {}", gpus,
                    others),
        says_data ? fmt::format("write gpus = {}", others)
                  : fmt::format("use a multiple of {}", others));
  else if (!says_data)
    degrees.data = static_cast<int>(gpus / others);
  return strategy;
}

void read_blocks(RunReader& reader, PublishedRun& run) {
  const toml::node* node = reader.find("blocks_per_stage");
  if (node == nullptr) return;
  const auto* text = node->as_string();
  run.uniform_blocks = text != nullptr && text->get() == kUniform;
  if (run.uniform_blocks) return;
  const toml::array* array = node->as_array();
  for (std::size_t i = 0; array != nullptr && i < array->size(); ++i) {
    const auto* blocks = (*array)[i].as_integer();
    if (blocks == nullptr || blocks->get() < 0 || blocks->get() > kMostBlocks) array = nullptr;
    if (array != nullptr) run.blocks_per_stage.push_back(static_cast<int>(blocks->get()));
  }
  if (array == nullptr || array->empty())
    reader.complain("blocks_per_stage", "invalid value for 'blocks_per_stage'",
                    "write one number of blocks per stage, such as [3, 4, 4, 3], or \"uniform\"");
}

/// Parses a quantity; problems are collected.
template <class Quantity>
std::optional<Quantity> quantity(RunReader& reader, std::string_view key,
                                 Quantity (*parse)(std::string_view, std::string_view)) {
  if (reader.find(key) == nullptr) return std::nullopt;
  const std::string text = reader.text(key, "");
  if (text.empty()) return std::nullopt;  // not a string: already reported
  try {
    return parse(text, reader.where(key));
  } catch (const InputError& error) {
    reader.findings().complaints.insert(reader.findings().complaints.end(),
                                        error.diagnostics().begin(), error.diagnostics().end());
    return std::nullopt;
  }
}

void read_measured(RunReader& reader, PublishedRun& run) {
  static const std::vector<std::string> kKinds(kMemoryNames.begin(), kMemoryNames.end());
  run.step_time = quantity(reader, "step_time", parse_seconds);
  run.step_time_p10 = quantity(reader, "step_time_p10", parse_seconds);
  run.step_time_p90 = quantity(reader, "step_time_p90", parse_seconds);
  const toml::node* memory = reader.find("memory");
  const auto* text = memory != nullptr ? memory->as_string() : nullptr;
  run.ran_out_of_memory = text != nullptr && text->get() == kOutOfMemory;
  if (!run.ran_out_of_memory) run.memory = quantity(reader, "memory", parse_measured_bytes);
  run.memory_kind =
      static_cast<MeasuredMemory>(reader.reader_of("memory_kind").choice("memory_kind", kKinds, 0));
  if (reader.find("step_time") == nullptr && memory == nullptr)
    reader.complain("", fmt::format("run '{}' has no measured value", run.id),
                    "add step_time = \"1.42 s\" or memory = \"39.07 GiB\"");
}

void read_assumed(RunReader& reader, PublishedRun& run) {
  const toml::node* node = reader.find("assumed");
  if (node == nullptr) return;
  const toml::array* array = node->as_array();
  if (array == nullptr || !(array->empty() || array->is_homogeneous<std::string>()))
    return reader.complain("assumed", "invalid value for 'assumed': expected an array of strings",
                           "write the keys whose values the source does not state");
  for (const toml::node& item : *array) run.assumed.push_back(**item.as_string());
}

/// Index of the text called `name`; used.size() if there is none.
std::size_t index_of(std::string_view name, const std::vector<NamedText>& used) {
  const auto found = std::find_if(used.begin(), used.end(),
                                  [&](const NamedText& text) { return text.name == name; });
  return static_cast<std::size_t>(found - used.begin());
}

/// What a run may refer to by name: tables of the file, then presets.
struct RunShelf {
  const char* key;  ///< "model", "cluster"
  const toml::table* own;
  std::span<const EmbeddedText> presets;
  NamedText (*find_preset)(const std::string&);
  std::string (*text_of)(const toml::table&);
};

std::size_t read_reference(RunReader& reader, const RunShelf& shelf, std::vector<NamedText>& used) {
  const std::string name = reader.text(shelf.key);
  if (name.empty()) return 0;
  const std::size_t index = index_of(name, used);
  if (index < used.size()) return index;
  const toml::table* own = shelf.own != nullptr ? shelf.own->get_as<toml::table>(name) : nullptr;
  if (own != nullptr) {
    const bool is_config = shelf.find_preset == find_model;
    used.push_back({name, is_config ? reader.findings().where(*own) : reader.findings().file,
                    shelf.text_of(*own)});
    return index;
  }
  std::vector<std::string> names = names_of(shelf.presets);
  if (std::find(names.begin(), names.end(), name) != names.end()) {
    used.push_back(shelf.find_preset(name));
    return index;
  }
  if (shelf.own != nullptr)
    for (const auto& [key, value] : *shelf.own) names.insert(names.begin(), std::string(key.str()));
  reader.complain(shelf.key, fmt::format("unknown {} '{}'", shelf.key, name), suggest(name, names));
  return 0;
}

std::string read_trainer(RunReader& reader) {
  std::string name = reader.text("trainer");
  const std::vector<std::string> names = trainer_preset_names();
  if (!name.empty() && std::find(names.begin(), names.end(), name) == names.end())
    reader.complain("trainer", fmt::format("unknown trainer '{}'", name), suggest(name, names));
  return name;
}

/// The table at `key`, or null; `{}` of inline tables included.
const toml::table* table_at(const toml::table& root, std::string_view key, TomlFindings& findings) {
  const toml::node* node = root.get(key);
  if (node == nullptr || node->is_table()) return node != nullptr ? node->as_table() : nullptr;
  findings.complaints.push_back({findings.where(*node), fmt::format("'{}' must be a table", key),
                                 fmt::format("start the table with [{}]", key)});
  return nullptr;
}

class SetReader {
 public:
  SetReader(const toml::table& root, PublishedSet& set, TomlFindings& findings)
      : root_(root),
        set_(set),
        findings_(findings),
        models_{"model", table_at(root, "models", findings), embedded_models(), find_model,
                json_text_of},
        clusters_{"cluster", table_at(root, "clusters", findings), embedded_clusters(),
                  find_cluster, text_with_positions} {
    if (const toml::table* defaults = table_at(root, "defaults", findings)) defaults_ = defaults;
  }

  void read() {
    TomlReader top(root_, "", findings_);
    top.whole_number("schema", kSchemaOfRuns, kSchemaOfRuns);
    set_.source = top.text("source");
    set_.trust = top.text("trust", "");
    for (const char* key : {"defaults", "models", "clusters", "runs"}) top.has(key);
    top.finish();
    const toml::array* runs = root_.get_as<toml::array>("runs");
    if (runs == nullptr || !runs->is_homogeneous(toml::node_type::table)) {
      top.complain("runs", "missing runs", "start each run with [[runs]]");
      return;
    }
    if (runs->size() > kMostRuns) {
      top.complain("runs",
                   fmt::format("{} runs: at most {} are supported", runs->size(), kMostRuns),
                   "split the file");
      return;
    }
    for (std::size_t i = 0; i < runs->size(); ++i) {
      if (findings_.complaints.size() >= kProblemsWorthShowing) return;
      read_run(*(*runs)[i].as_table(), i);
    }
  }

 private:
  void read_run(const toml::table& table, std::size_t index) {
    RunReader reader(table, *defaults_, fmt::format("runs[{}]", index), findings_);
    PublishedRun run;
    run.id = reader.text("id");
    if (!ids_.insert(run.id).second)
      reader.complain("id", fmt::format("two runs are called '{}'", run.id), "rename one of them");
    run.group = reader.text("group", "");
    run.origin = reader.text("where", "");
    run.note = reader.text("note", "");
    run.trap = reader.text("trap", "");
    run.trainer = read_trainer(reader);
    run.model = read_reference(reader, models_, set_.models);
    run.cluster = read_reference(reader, clusters_, set_.clusters);
    run.strategy = read_strategy_of_run(reader);
    read_blocks(reader, run);
    read_measured(reader, run);
    read_assumed(reader, run);
    run.positions = reader.positions();
    set_.runs.push_back(std::move(run));
  }

  const toml::table& root_;
  const toml::table empty_{};
  const toml::table* defaults_ = &empty_;
  PublishedSet& set_;
  TomlFindings& findings_;
  RunShelf models_, clusters_;
  std::set<std::string> ids_;
};

/// A mistake in `defaults` is found again in every run.
void throw_distinct(std::vector<Diagnostic> complaints) {
  std::vector<Diagnostic> distinct;
  for (Diagnostic& complaint : complaints)
    if (std::find(distinct.begin(), distinct.end(), complaint) == distinct.end())
      distinct.push_back(std::move(complaint));
  throw_if_any(distinct);
}

std::string position_of(const PublishedRun& run, std::string_view key) {
  const auto found = run.positions.find(key);
  return found != run.positions.end() ? found->second : run.positions.at("");
}

}  // namespace

std::string_view name_of(MeasuredMemory kind) {
  return kMemoryNames[static_cast<std::size_t>(kind)];
}

PublishedSet published_set_from_toml(const NamedText& toml) {
  const toml::table root = parse_toml(toml, "published-runs");
  TomlFindings findings{.file = toml.where, .complaints = {}, .sources = {}};
  PublishedSet set;
  set.name = toml.name;
  set.where = toml.where;
  SetReader(root, set, findings).read();
  throw_distinct(std::move(findings.complaints));
  return set;
}

const PublishedRun& find_run(const PublishedSet& set, std::string_view id) {
  std::vector<std::string> ids;
  for (const PublishedRun& run : set.runs) {
    if (run.id == id) return run;
    ids.push_back(run.id);
  }
  throw InputError({set.where, fmt::format("unknown run '{}'", id), suggest(id, ids)});
}

std::vector<int> blocks_per_stage_of(const PublishedRun& run, const ModelGraph& model) {
  if (!run.uniform_blocks) return run.blocks_per_stage;
  const std::int64_t stages = stage_count(run.strategy.degrees);
  const int blocks = traits_of(model).blocks;
  if (blocks % stages != 0)
    throw InputError(
        {position_of(run, "blocks_per_stage"),
         fmt::format("{} blocks cannot be divided evenly among {} stages", blocks, stages),
         "write the number of blocks of every stage"});
  return std::vector<int>(static_cast<std::size_t>(stages), static_cast<int>(blocks / stages));
}

std::vector<Diagnostic> at_positions(const PublishedRun& run, std::vector<Diagnostic> problems) {
  for (Diagnostic& problem : problems) {
    std::string key = problem.where;
    key.erase(0, key.starts_with("--") ? 2 : key.rfind('/') + 1);
    std::replace(key.begin(), key.end(), '-', '_');
    problem.what = fmt::format("run '{}', {}: {}", run.id, key, problem.what);
    problem.where = position_of(run, key);
  }
  return problems;
}

}  // namespace meshwright
