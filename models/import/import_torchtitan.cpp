#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <set>

#include "core/plan/plan_numbers.hpp"
#include "core/schedule/schedule.hpp"
#include "models/families/load_model.hpp"
#include "models/import/import_job.hpp"
#include "models/import/import_lines.hpp"
#include "models/launch/torchtitan.hpp"
#include "models/load/load.hpp"
#include "models/text/printable_text.hpp"
#include "models/text/toml_reader.hpp"

namespace meshwright {
namespace {

constexpr std::int64_t kLargestJobValue = std::int64_t{1} << 31;
constexpr std::int64_t kMostJobGpus = 1 << 20;

/// Keys "table.key" of a job file with torchtitan's defaults (torchtitan/config/job_config.py).
class JobFile {
 public:
  explicit JobFile(const NamedText& source)
      : root_(parse_toml(source, "torchtitan job")), file_(source.where) {}

  bool has(std::string_view path) { return find(path) != nullptr; }
  std::int64_t count(std::string_view path, std::int64_t absent, std::int64_t least = 1) {
    const toml::node* node = find(path);
    if (node == nullptr) return absent;
    const auto value = node->value_exact<std::int64_t>();
    if (value && *value >= least && *value <= kLargestJobValue) return *value;
    complain(path, fmt::format("expected a whole number from {} to {}", least, kLargestJobValue),
             "");
    return absent;
  }
  std::string text(std::string_view path, const std::string& absent) {
    const toml::node* node = find(path);
    if (node == nullptr) return absent;
    if (const auto value = node->value_exact<std::string>()) return *value;
    complain(path, "expected text in quotes", "");
    return absent;
  }
  bool flag(std::string_view path, bool absent) {
    const toml::node* node = find(path);
    if (node == nullptr) return absent;
    if (const auto value = node->value_exact<bool>()) return *value;
    complain(path, "expected true or false", "");
    return absent;
  }
  /// Lists of names; empty if absent.
  std::vector<std::vector<std::string>> lists(std::string_view path) {
    std::vector<std::vector<std::string>> all;
    const toml::node* node = find(path);
    if (node == nullptr) return all;
    if (const toml::array* outer = node->as_array())
      for (const toml::node& inner : *outer) {
        std::vector<std::string>& names = all.emplace_back();
        if (const toml::array* list = inner.as_array())
          for (const toml::node& name : *list) names.push_back(name.value_or(std::string()));
        else
          names.push_back(inner.value_or(std::string()));
      }
    return all;
  }

  void complain(std::string_view path, std::string what, std::string hint) {
    const toml::node* node = find(path);
    const std::string place = node != nullptr ? place_of(*node, file_) : file_;
    complaints_.push_back({fmt::format("{}: {}", place, path), std::move(what), std::move(hint)});
  }
  void throw_complaints() const { throw_if_any(complaints_); }

  /// Keys that were never asked for: "optimizer.lr".
  std::vector<std::string> unused() const {
    std::vector<std::string> names;
    collect(root_, "", names);
    return names;
  }

 private:
  const toml::node* find(std::string_view path) {
    asked_.emplace(path);
    return root_.at_path(path).node();
  }
  void collect(const toml::table& table, const std::string& prefix,
               std::vector<std::string>& names) const {
    for (const auto& [key, node] : table) {
      const std::string path = prefix + printable_text(key.str());
      if (const toml::table* inner = node.as_table())
        collect(*inner, path + ".", names);
      else if (!asked_.contains(path))
        names.push_back(path);
    }
  }

  toml::table root_;
  std::string file_;
  std::set<std::string, std::less<>> asked_;
  std::vector<Diagnostic> complaints_;
};

class JobFileReader {
 public:
  JobFileReader(JobFile& file, const JobImportOptions& options, ImportedJob& job)
      : f_(file), options_(options), job_(job), s_(job.strategy) {}

  void read() {
    model();
    degrees();
    sharding();
    options_of_axes();
    if (s_.degrees.pipeline > 1) pipeline();
    batch();
    precision();
    recompute();
  }

 private:
  std::string key(std::string_view name) const { return fmt::format("parallelism.{}", name); }
  int degree(std::string_view name) {
    const std::int64_t value = f_.count(key(name), 1);
    if (value <= kMostJobGpus) return static_cast<int>(value);
    f_.complain(key(name), fmt::format("{}: expected at most {}", value, kMostJobGpus), "");
    return 1;
  }

  void model() {
    const std::string name = f_.text("model.name", "llama3");
    const std::string flavor = f_.text("model.flavor", "debugmodel");
    if (options_.model) {
      job_.model = *options_.model;
      return;
    }
    std::vector<std::string> known;
    for (const TorchtitanFlavor& one : torchtitan_flavors()) {
      if (one.model == name && one.flavor == flavor)
        job_.model = find_model(std::string(one.preset));
      known.push_back(fmt::format("{} {}", one.model, one.flavor));
    }
    if (job_.model.text.empty())
      f_.complain(
          "model.flavor",
          fmt::format("unknown flavor '{}' of model '{}'", printable_text(flavor),
                      printable_text(name)),
          fmt::format("give the model with --model; known flavors: {}", fmt::join(known, ", ")));
  }

  bool has_experts() const {
    if (job_.model.text.empty()) return false;
    const auto model = load_transformer(job_.model);
    return model && model->config.experts.experts > 0;
  }

  void degrees() {
    ParallelDegrees& d = s_.degrees;
    d.tensor = degree("tensor_parallel_degree");
    d.pipeline = degree("pipeline_parallel_degree");
    d.context = degree("context_parallel_degree");
    d.expert = degree("expert_parallel_degree");
    d.expert_tensor = degree("expert_tensor_parallel_degree");
    if (d.expert == 1) d.expert_tensor = has_experts() ? d.tensor : 1;  // the key has no effect
    const int replicas = degree("data_parallel_replicate_degree");
    const std::int64_t other_ranks =
        saturating_product({d.tensor, d.pipeline, d.context, replicas});
    std::int64_t shards = f_.count(key("data_parallel_shard_degree"), -1, -1);
    if (shards < 1 && !options_.gpus) {
      f_.complain(key("data_parallel_shard_degree"), "-1: depends on the number of GPUs",
                  "set --gpus");
      return;
    }
    if (options_.gpus) {
      if (*options_.gpus % other_ranks != 0 ||
          (shards > 0 && *options_.gpus != saturating_product({other_ranks, shards}))) {
        f_.complain(key("data_parallel_shard_degree"),
                    fmt::format("the degrees do not multiply to {} GPUs", *options_.gpus),
                    "check --gpus");
        return;
      }
      shards = *options_.gpus / other_ranks;
    }
    if (const std::int64_t all = saturating_product({other_ranks, shards}); all > kMostJobGpus) {
      f_.complain(key("data_parallel_shard_degree"),
                  fmt::format("the degrees multiply to {} GPUs; at most {} are possible", all,
                              kMostJobGpus),
                  "");
      return;
    }
    d.data = static_cast<int>(replicas * shards);
    if (replicas > 1 && shards > 1) s_.data_parallelism.shard_ranks = static_cast<int>(shards);
    shards_ = shards;
  }

  /// FSDP gathers parameters again for the backward pass, by default unless there is a pipeline.
  void sharding() {
    const std::string reshard = f_.text(key("fsdp_reshard_after_forward"), "");
    const bool is_sharded = shards_ > 1 || s_.degrees.context > 1 || !reshard.empty();
    if (!is_sharded) return;
    const bool gathers_again =
        reshard == "always" || (reshard != "never" && s_.degrees.pipeline == 1);
    s_.zero = gathers_again ? 3 : 2;
  }

  void options_of_axes() {
    s_.sequence_parallel = s_.degrees.tensor > 1;
    ModelParallelism& m = s_.model_parallelism;
    m.tensor_overlap = f_.flag(key("enable_async_tensor_parallel"), false);
    const std::string rotation = f_.text(key("context_parallel_rotate_method"), "allgather");
    if (s_.degrees.context > 1)
      m.context = rotation == "alltoall" ? ContextAlgorithm::kRing : ContextAlgorithm::kAllGather;
  }

  // ---- pipeline ----
  const ScheduleRule* schedule_rule() {
    const std::string name = f_.text(key("pipeline_parallel_schedule"), "1F1B");
    std::vector<std::string> known;
    for (const ScheduleRule& rule : schedule_rules()) {
      if (rule.launch.pytorch.empty()) continue;
      if (lower_case(rule.launch.pytorch) == lower_case(name)) return &rule;
      known.emplace_back(rule.launch.pytorch);
    }
    f_.complain(key("pipeline_parallel_schedule"),
                fmt::format("invalid value '{}'", printable_text(name)), suggest(name, known));
    return nullptr;
  }

  void pipeline() {
    const ScheduleRule* rule = schedule_rule();
    if (rule == nullptr) return;
    s_.schedule = std::string(rule->name);
    if (!f_.text(key("pipeline_parallel_schedule_csv"), "").empty())
      f_.complain(key("pipeline_parallel_schedule_csv"), "orders in files are not imported",
                  "use a schedule by name");
    const bool is_single = rule->name == "1f1b" || rule->name == "gpipe";
    const auto lists = f_.lists(key("module_fqns_per_model_part"));
    if (!lists.empty())
      read_modules(lists);
    else
      divide_layers(is_single);
    const auto stages = static_cast<int>(job_.blocks_per_stage.size());
    if (stages == 0) return;
    if (stages % s_.degrees.pipeline != 0)
      f_.complain(key("pipeline_parallel_degree"),
                  fmt::format("{} stages on {} pipeline ranks", stages, s_.degrees.pipeline),
                  "the number of stages must be a multiple of it");
    s_.degrees.chunks = std::max(stages / s_.degrees.pipeline, 1);
  }

  void read_modules(const std::vector<std::vector<std::string>>& lists) {
    for (const std::vector<std::string>& names : lists)
      job_.blocks_per_stage.push_back(static_cast<int>(
          std::ranges::count_if(names, [](const auto& n) { return n.starts_with("layers."); })));
  }

  /// Embedding and output count as layers: torchtitan/distributed/pipeline_parallel.py,
  /// generate_llm_fqn_per_model_part().
  void divide_layers(bool is_single) {
    if (job_.model.text.empty()) return;
    const std::int64_t first = f_.count(key("pipeline_parallel_first_stage_less_layers"), 1, 0);
    const std::int64_t last = f_.count(key("pipeline_parallel_last_stage_less_layers"), 1, 0);
    const std::int64_t all = block_count(model_from_config(job_.model)) + first + last;
    const std::int64_t per_stage = f_.count(key("pipeline_parallel_layers_per_stage"), 0, 0);
    const std::int64_t stages = per_stage > 0
                                    ? (all + per_stage - 1) / per_stage
                                    : std::int64_t{s_.degrees.pipeline} * (is_single ? 1 : 2);
    for (std::int64_t i = 0; i < stages; ++i)
      job_.blocks_per_stage.push_back(static_cast<int>(all / stages + (i < all % stages ? 1 : 0)));
    job_.blocks_per_stage.front() -= static_cast<int>(first);
    job_.blocks_per_stage.back() -= static_cast<int>(last);
    if (job_.blocks_per_stage.front() < 0 || job_.blocks_per_stage.back() < 0)
      f_.complain(key("pipeline_parallel_degree"),
                  fmt::format("{} stages for {} layers", stages, all), "use fewer stages");
  }

  // ---- the rest ----
  void batch() {
    const std::int64_t local = f_.count("training.local_batch_size", 8);
    const std::int64_t global = f_.count("training.global_batch_size", -1, -1);
    const std::int64_t micro =
        s_.degrees.pipeline > 1 ? f_.count(key("pipeline_parallel_microbatch_size"), 1) : local;
    s_.micro_batch = static_cast<int>(std::min<std::int64_t>(micro, 1 << 20));
    s_.global_batch = global > 0 ? global : local * s_.degrees.data;
    s_.sequence_length = f_.count("training.seq_len", 2048);
  }

  void precision() {
    if (f_.text("training.mixed_precision_param", "bfloat16") == "float32") s_.dtype = Dtype::kFp32;
    f_.text("training.mixed_precision_reduce", "float32");
    for (const std::vector<std::string>& names : f_.lists("model.converters"))
      for (const std::string& name : names) {
        if (name != "quantize.linear.float8" && name != "quantize.linear.mx") continue;
        s_.dtype = Dtype::kFp8;
        s_.precision.fp8_recipe =
            name == "quantize.linear.mx" ? Fp8Recipe::kMxfp8 : Fp8Recipe::kTensorwise;
      }
    const std::string recipe = f_.text("quantize.linear.float8.recipe_name", "tensorwise");
    f_.text("quantize.linear.mx.recipe_name", "");
    if (recipe != "tensorwise")
      job_.notes.emplace_back("fp8 scales per row are modeled as per tensor");
    const bool gathers = f_.flag("quantize.linear.float8.enable_fsdp_float8_all_gather", false);
    s_.precision.fp8_parameters = gathers && s_.dtype == Dtype::kFp8;
  }

  void recompute() {
    const std::string mode = f_.text("activation_checkpoint.mode", "selective");
    const std::string option = f_.text("activation_checkpoint.selective_ac_option", "2");
    if (mode == "full") s_.recompute.kind = RecomputeKind::kFull;
    if (mode == "selective") s_.recompute.kind = RecomputeKind::kTorchSelective;
    if (mode == "selective" && option != "op")
      job_.notes.push_back(
          fmt::format("recomputation of every {}th block is modeled as selective by operator",
                      printable_text(option)));
    if (mode != "full" && mode != "selective" && mode != "none")
      f_.complain("activation_checkpoint.mode",
                  fmt::format("unsupported value '{}'", printable_text(mode)),
                  "expected none, full or selective");
  }

  JobFile& f_;
  const JobImportOptions& options_;
  ImportedJob& job_;
  Strategy& s_;
  std::int64_t shards_ = 1;
};

/// True if a key that is not modeled affects the step time or memory.
bool changes_time(std::string_view key) {
  return key.starts_with("parallelism.") || key.starts_with("quantize.") ||
         key == "training.enable_cpu_offload" || key == "training.dtype" ||
         key == "optimizer.implementation";
}

}  // namespace

ImportedJob import_torchtitan(const NamedText& toml, const JobImportOptions& options) {
  JobFile file(toml);
  ImportedJob job;
  JobFileReader(file, options, job).read();
  job.trainer = file.flag("compile.enable", false) ? "torchtitan" : "torchtitan-eager";
  file.throw_complaints();
  for (const std::string& name : file.unused())
    (changes_time(name) ? job.not_modeled : job.ignored).push_back(name);
  return job;
}

}  // namespace meshwright
