// Slurm's switches: topology.conf of the tree plugin, or `scontrol show topology` (Slurm manual,
// topology.conf(5)): lines of Key=Value pairs, case-insensitive keys, comments after '#'.
//   SwitchName=leaf1 Nodes=tux[0-15]        SwitchName=top Switches=leaf[1-4]
//   BlockName=b1 Nodes=tux[0-17]
// Each level of switches becomes a fabric level, with the nodes below its largest switch. The file
// does not contain oversubscription.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "models/import/import_lines.hpp"
#include "models/load/load.hpp"

namespace meshwright {
namespace {

constexpr std::size_t kMostNames = 200'000;
constexpr int kMostLevels = 16;

/// "tux[0-3,12],login1" → tux0 tux1 tux2 tux3 tux12 login1. Leading zeros are kept: [08-10].
class HostList {
 public:
  HostList(const NamedText& source, int line) : source_(source), line_(line) {}

  std::vector<std::string> expand(std::string_view text) {
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t end = end_of_entry(text, begin);
      add_entry(text.substr(begin, end - begin));
      begin = end + 1;
    }
    return std::move(names_);
  }

 private:
  [[noreturn]] void refuse_list(std::string_view entry) {
    refuse(source_, line_, fmt::format("invalid host list '{}'", printable_text(entry)),
           "write host lists like tux[0-3,12],login1");
  }
  /// Position of the comma after the entry at `begin`; commas in brackets do not count.
  std::size_t end_of_entry(std::string_view text, std::size_t begin) {
    bool inside = false;
    for (std::size_t i = begin; i < text.size(); ++i) {
      if (text[i] == '[') inside = true;
      if (text[i] == ']') inside = false;
      if (text[i] == ',' && !inside) return i;
    }
    return text.size();
  }
  void add(std::string name) {
    if (names_.size() >= kMostNames)
      refuse(source_, line_, fmt::format("more than {} names", kMostNames), "");
    names_.push_back(std::move(name));
  }
  /// Prefix, one bracket, suffix without a bracket.
  void add_entry(std::string_view entry) {
    const std::size_t open = entry.find('[');
    if (open == std::string_view::npos) {
      if (entry.empty() || entry.find(']') != std::string_view::npos) refuse_list(entry);
      return add(std::string(entry));
    }
    const std::size_t close = entry.find(']');
    if (close == std::string_view::npos || close < open) refuse_list(entry);
    const std::string_view suffix = entry.substr(close + 1);
    if (suffix.find_first_of("[]") != std::string_view::npos) refuse_list(entry);
    std::string_view ranges = entry.substr(open + 1, close - open - 1);
    while (true) {
      const std::size_t comma = ranges.find(',');
      add_range(entry, entry.substr(0, open), ranges.substr(0, comma), suffix);
      if (comma == std::string_view::npos) return;
      ranges = ranges.substr(comma + 1);
    }
  }
  void add_range(std::string_view entry, std::string_view prefix, std::string_view range,
                 std::string_view suffix) {
    const std::size_t dash = range.find('-');
    const std::string_view low = range.substr(0, dash);
    const std::string_view high = dash == std::string_view::npos ? low : range.substr(dash + 1);
    const auto first = whole_number(low), last = whole_number(high);
    if (!first || !last || *first < 0 || *last < *first) refuse_list(entry);
    if (*last - *first >= static_cast<std::int64_t>(kMostNames))
      refuse(source_, line_, fmt::format("more than {} names", kMostNames), "");
    for (std::int64_t n = *first; n <= *last; ++n)
      add(fmt::format("{}{:0{}}{}", prefix, n, low.size(), suffix));
  }

  const NamedText& source_;
  int line_;
  std::vector<std::string> names_;
};

struct Switch {
  std::vector<std::string> nodes, switches;
  int line = 1;
};

class TopologyReader {
 public:
  explicit TopologyReader(const NamedText& source) : source_(source) {}

  std::map<std::string, Switch> read() {
    for (const TextLine& line : lines_of(source_)) {
      const std::string text = line.text.substr(0, line.text.find('#'));
      const std::vector<std::string> words = words_of(text);
      if (!words.empty()) read_line(line.number, words);
    }
    if (switches_.empty())
      refuse(source_, 1, "no switches found",
             "pass topology.conf, or the output of scontrol show topology");
    return std::move(switches_);
  }

 private:
  void read_line(int line, const std::vector<std::string>& words) {
    std::string name;
    Switch found{.nodes = {}, .switches = {}, .line = line};
    for (const std::string& word : words) {
      const std::size_t equals = word.find('=');
      if (equals == std::string::npos)
        refuse(source_, line, fmt::format("expected Key=Value, got '{}'", printable_text(word)),
               "write lines like SwitchName=leaf1 Nodes=tux[0-15]");
      const std::string key = lower_case(word.substr(0, equals));
      const std::string value = word.substr(equals + 1);
      if (key == "switchname" || key == "blockname") name = value;
      if (key == "nodes") found.nodes = HostList(source_, line).expand(value);
      if (key == "switches") found.switches = HostList(source_, line).expand(value);
    }
    if (name.empty()) {
      if (lower_case(words.front()).starts_with("blocksizes")) return;
      refuse(source_, line, "missing SwitchName or BlockName",
             "write lines like SwitchName=leaf1 Nodes=tux[0-15]");
    }
    // For higher switches, `scontrol show topology` lists all nodes as well.
    if (!found.switches.empty()) found.nodes.clear();
    if (found.nodes.empty() && found.switches.empty())
      refuse(source_, line,
             fmt::format("switch '{}' has neither Nodes nor Switches", printable_text(name)),
             "add Nodes= or Switches=");
    if (!switches_.emplace(name, std::move(found)).second)
      refuse(source_, line, fmt::format("duplicate switch '{}'", printable_text(name)),
             "use each switch name once");
  }

  const NamedText& source_;
  std::map<std::string, Switch> switches_;
};

/// The number of nodes below each switch.
class SwitchTree {
 public:
  SwitchTree(const NamedText& source, const std::map<std::string, Switch>& switches)
      : source_(source), switches_(switches) {
    for (const auto& [name, each] : switches_) {
      for (const std::string& child : each.switches) check_child(name, each, child);
      for (const std::string& node : each.nodes)
        if (!nodes_.insert(node).second)
          refuse(source_, each.line,
                 fmt::format("node '{}' is connected to two switches", printable_text(node)),
                 "connect each node to one leaf switch");
    }
    for (const auto& [name, each] : switches_)
      if (!has_parent_.contains(name)) measure(name, 0);
    if (size_.size() != switches_.size())
      refuse(source_, 1, "cycle of switches", "remove the cycle: switches must form a tree");
  }

  int nodes() const { return static_cast<int>(nodes_.size()); }
  /// Most nodes below one switch, by height above the nodes (leaf switches first).
  std::vector<int> level_sizes() const { return level_sizes_; }
  bool is_even() const { return is_even_; }

 private:
  void check_child(const std::string& name, const Switch& each, const std::string& child) {
    if (!switches_.contains(child)) {
      std::vector<std::string> known;
      for (const auto& entry : switches_) known.push_back(entry.first);
      refuse(source_, each.line,
             fmt::format("unknown switch '{}' below '{}'", printable_text(child),
                         printable_text(name)),
             suggest(child, known));
    }
    if (!has_parent_.insert(child).second)
      refuse(source_, each.line,
             fmt::format("switch '{}' is connected to two higher switches", printable_text(child)),
             "connect each switch to one higher switch");
  }

  struct Size {
    int nodes = 0, height = 0;
  };
  Size measure(const std::string& name, int depth) {
    const Switch& each = switches_.at(name);
    if (depth >= kMostLevels)
      refuse(source_, each.line, fmt::format("more than {} levels of switches", kMostLevels), "");
    Size size{.nodes = static_cast<int>(each.nodes.size()), .height = 0};
    for (const std::string& child : each.switches) {
      const Size below = measure(child, depth + 1);
      size.nodes += below.nodes;
      size.height = std::max(size.height, below.height + 1);
    }
    size_[name] = size;
    const auto height = static_cast<std::size_t>(size.height);
    if (level_sizes_.size() <= height) level_sizes_.resize(height + 1, 0);
    if (level_sizes_[height] != 0 && level_sizes_[height] != size.nodes) is_even_ = false;
    level_sizes_[height] = std::max(level_sizes_[height], size.nodes);
    return size;
  }

  const NamedText& source_;
  const std::map<std::string, Switch>& switches_;
  std::set<std::string> nodes_, has_parent_;
  std::map<std::string, Size> size_;
  std::vector<int> level_sizes_;
  bool is_even_ = true;
};

/// Fabric levels; each size is a multiple of the one below. The top switch, which holds all nodes,
/// is not a level: it has no uplinks.
std::vector<FabricLevel> levels_of(const SwitchTree& tree) {
  std::vector<FabricLevel> levels;
  int below = 1;
  for (const int size : tree.level_sizes()) {
    const int rounded = (size + below - 1) / below * below;
    if (rounded <= below || rounded >= tree.nodes()) continue;
    levels.push_back({.nodes = rounded, .oversubscription = 1.0});
    below = rounded;
  }
  return levels;
}

}  // namespace

ImportedCluster import_slurm(const NamedText& text, const ImportOptions& options) {
  const std::map<std::string, Switch> switches = TopologyReader(text).read();
  const SwitchTree tree(text, switches);
  if (!options.like)
    throw InputError({text.where, "a Slurm topology does not describe its nodes",
                      "give a cluster with the same nodes: --like CLUSTER"});
  ImportedCluster result;
  result.cluster = cluster_from_toml(*options.like);
  Cluster& cluster = result.cluster;
  for (auto& [key, source] : cluster.sources)
    source = fmt::format("from {}: {}", options.like->name, source);
  const std::string source = fmt::format("Slurm topology, {}", text.where);
  cluster.name = text.name;
  const std::string node = cluster.groups.front().node;
  cluster.groups = {{.node = node, .count = tree.nodes()}};
  std::erase_if(cluster.sources, [](const auto& entry) {
    return entry.first.starts_with("groups") || entry.first.starts_with("validation");
  });
  cluster.sources["groups[0].count"] = source;
  cluster.fabric.levels = levels_of(tree);
  for (std::size_t l = 0; l < cluster.fabric.levels.size(); ++l)
    cluster.sources[fmt::format("fabric.levels[{}].nodes", l)] = source;
  if (!cluster.fabric.levels.empty())
    result.notes.emplace_back(
        "the file does not contain oversubscription: assumed 1 (full bisection); set it in "
        "[[fabric.levels]]");
  if (!tree.is_even())
    result.notes.emplace_back(
        "switches of one level have different numbers of nodes: assumed the largest for all");
  require_sound(cluster, text.where);
  return result;
}

bool is_slurm(std::string_view head) {
  return !is_nccl_topology(head) && (contains(head, "switchname=") || contains(head, "blockname="));
}

}  // namespace meshwright
