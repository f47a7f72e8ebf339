/// Published, measured training runs (`models/published/*.toml`): what ran on what, how, how long a
/// step took and how much memory it used. Every run is a job that `simulate` opens.
///
///   schema = 1
///   source = "arXiv 2205.05198, tables 3 and 5"
///   trust = "high"                                # how far the figures can be trusted, one word
///   defaults.cluster = "dgx-a100"                 # any key of a run except its id
///   models.gpt-22b = {model_type = "gpt2", …}     # HuggingFace config.json as TOML
///   clusters.small = {extends = "dgx-a100", …}    # cluster file as TOML
///   [[runs]]
///   id = "P1604"
///   model = "gpt-22b"                             # of this file, or a preset
///   gpus = 8
///   tp = 8                                        # keys of `strategy` in plan files
///   blocks_per_stage = [3, 4, 4, 3]               # or "uniform"; absent: chosen by the program
///   step_time = "1.42 s"
///   memory = "39.07 GiB"                          # or "oom"
///   memory_kind = "allocated"
///   assumed = ["recompute"]                       # keys whose values the source does not state
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/units.hpp"
#include "core/plan/plan.hpp"
#include "models/text/named_text.hpp"

namespace meshwright {

/// What a published figure of memory counts.
enum class MeasuredMemory : std::uint8_t {
  kAllocated,  ///< tensors (PyTorch's max_memory_allocated)
  kReserved,   ///< segments of the caching allocator (max_memory_reserved)
  kDevice      ///< all use of the device (nvidia-smi)
};
std::string_view name_of(MeasuredMemory kind);  ///< "allocated", "reserved", "device"

struct PublishedRun {
  std::string id;      ///< unique in its file
  std::string group;   ///< runs of different groups are not compared with each other; may be empty
  std::string origin;  ///< table, figure or line in the source
  std::string note;
  std::string trainer;                 ///< name of the training program
  std::size_t model = 0, cluster = 0;  ///< in PublishedSet
  Strategy strategy;
  std::vector<int> blocks_per_stage;  ///< empty: not stated
  bool uniform_blocks = false;        ///< the same number of blocks on every stage

  std::optional<Seconds> step_time, step_time_p10, step_time_p90;
  std::optional<Bytes> memory;  ///< peak, of the rank with the highest peak
  MeasuredMemory memory_kind = MeasuredMemory::kAllocated;
  bool ran_out_of_memory = false;
  std::vector<std::string> assumed;  ///< keys whose values the source does not state
  std::string trap;                  ///< why no prediction can be expected to match; empty: it can

  std::map<std::string, std::string, std::less<>> positions;  ///< key → "file:line:column"
  friend bool operator==(const PublishedRun&, const PublishedRun&) = default;
};

/// One file: the runs of one source.
struct PublishedSet {
  std::string name;   ///< file name without extension
  std::string where;  ///< path or "preset NAME"
  std::string source, trust;
  std::vector<NamedText> models, clusters;  ///< used by runs
  std::vector<PublishedRun> runs;
  friend bool operator==(const PublishedSet&, const PublishedSet&) = default;
};

/// Reads a file of published runs. InputError with file:line:column and the nearest names. Models
/// and clusters are looked up but not loaded, and strategies not checked against them.
PublishedSet published_set_from_toml(const NamedText& toml);

/// By preset name or path (as find_model()).
NamedText find_published_set(const std::string& name_or_path);
std::vector<std::string> published_set_names();  ///< of the presets, sorted
/// True for "SET#ID", where SET is a preset or a path that ends in .toml.
bool names_published_run(std::string_view text);
/// The run called `id`; InputError with the nearest ids.
const PublishedRun& find_run(const PublishedSet& set, std::string_view id);

/// The plan's number of blocks per stage: as published, or empty if it is not stated. InputError if
/// the blocks of the model cannot be divided evenly as published.
std::vector<int> blocks_per_stage_of(const PublishedRun& run, const ModelGraph& model);
/// The problems of a plan of this run (check_plan(), complete_plan()) at the positions of its keys.
std::vector<Diagnostic> at_positions(const PublishedRun& run, std::vector<Diagnostic> problems);

}  // namespace meshwright
