#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <unordered_map>

#include "core/base/error.hpp"
#include "core/base/number_from_text.hpp"
#include "models/graphs/graph_files.hpp"

namespace meshwright {
namespace {

constexpr std::string_view kSeparator = " -- ";
constexpr double kLargestAmount = 1e15;  ///< bytes; sums over all nodes fit int64
constexpr double kLongestTime = 1e9;     ///< milliseconds
constexpr double kMillisecondsPerSecond = 1e3;

/// The front of `rest` up to `separator`, or all of it; removed from `rest`.
std::string_view take_field(std::string_view& rest, std::string_view separator) {
  const std::size_t at = rest.find(separator);
  const std::string_view field = rest.substr(0, at);
  rest.remove_prefix(at == std::string_view::npos ? rest.size() : at + separator.size());
  return field;
}

class PipeDreamReader {
 public:
  explicit PipeDreamReader(const NamedText& file) : file_(file) {}
  PipeDreamProblem read();

 private:
  [[noreturn]] void fail(const std::string& what, const std::string& hint) const {
    throw InputError({fmt::format("{}:{}", file_.where, line_), what, hint});
  }
  double amount(std::string_view text, const char* key, double most) const;
  double field(std::string_view& rest, const char* key, double most) const;
  void read_node(std::string_view line);
  void read_edge(std::string_view line);
  std::int32_t node_named(std::string_view name) const;
  PipeDreamProblem without_inputs_and_unused_items();

  const NamedText& file_;
  std::size_t line_ = 0;
  PipeDreamProblem problem_;
  std::vector<std::string> descriptions_;
  std::unordered_map<std::string, std::int32_t> index_;
};

double PipeDreamReader::amount(std::string_view text, const char* key, double most) const {
  const auto value = number_from_text<double>(text);
  if (!value || !std::isfinite(*value) || *value < 0 || *value > most)
    fail(fmt::format("invalid value '{}' of '{}'", text, key),
         fmt::format("give a number from 0 to {:g}", most));
  return *value;
}

/// "KEY=12.5", or "KEY=[1.0; 2.0]": the sum.
double PipeDreamReader::field(std::string_view& rest, const char* key, double most) const {
  std::string_view text = take_field(rest, ", ");
  if (take_field(text, "=") != key)
    fail(fmt::format("missing '{}'", key),
         "give forward_compute_time, backward_compute_time, activation_size and parameter_size, in "
         "this order");
  if (text.size() < 2 || text.front() != '[' || text.back() != ']') return amount(text, key, most);
  text = text.substr(1, text.size() - 2);
  double sum = 0;
  while (!text.empty()) sum += amount(take_field(text, "; "), key, most);
  if (sum > most)
    fail(fmt::format("the values of '{}' add up to more than {:g}", key, most), "check the unit");
  return sum;
}

void PipeDreamReader::read_node(std::string_view line) {
  if (problem_.nodes.size() == kMostPipeDreamNodes)
    fail(fmt::format("more than {} nodes", kMostPipeDreamNodes), "merge nodes");
  const std::string name(take_field(line, kSeparator));
  descriptions_.emplace_back(take_field(line, kSeparator));
  std::string_view costs = take_field(line, kSeparator);  // a stage may follow
  const double forward = field(costs, "forward_compute_time", kLongestTime);
  const double backward = field(costs, "backward_compute_time", kLongestTime);
  const double activation = field(costs, "activation_size", kLargestAmount);
  const double parameters = field(costs, "parameter_size", kLargestAmount);
  if (name.empty() ||
      !index_.emplace(name, static_cast<std::int32_t>(problem_.nodes.size())).second)
    fail(fmt::format("node '{}' has no name of its own", name), "give every node its own name");
  problem_.nodes.push_back({.name = name,
                            .time = Seconds((forward + backward) / kMillisecondsPerSecond),
                            .activation = Bytes(std::llround(activation)),
                            .parameters = Bytes(std::llround(parameters))});
}

std::int32_t PipeDreamReader::node_named(std::string_view name) const {
  const auto found = index_.find(std::string(name));
  if (found == index_.end())
    fail(fmt::format("edge of node '{}', which does not exist", name),
         "define nodes before their edges");
  return found->second;
}

void PipeDreamReader::read_edge(std::string_view line) {
  if (problem_.edges.size() == kMostPipeDreamEdges)
    fail(fmt::format("more than {} edges", kMostPipeDreamEdges), "merge nodes");
  const std::int32_t source = node_named(take_field(line, kSeparator));
  problem_.edges.push_back({.source = source, .target = node_named(line)});
}

/// PipeDream leaves out inputs, which cost nothing, and items of tuples that nothing reads.
PipeDreamProblem PipeDreamReader::without_inputs_and_unused_items() {
  const std::size_t count = problem_.nodes.size();
  std::vector<bool> has_source(count, false), is_read(count, false);
  for (const PartitionEdge& edge : problem_.edges) {
    has_source[static_cast<std::size_t>(edge.target)] = true;
    is_read[static_cast<std::size_t>(edge.source)] = true;
  }
  std::vector<std::int32_t> new_index(count, -1);
  PipeDreamProblem kept;
  for (std::size_t v = 0; v < count; ++v) {
    const bool is_input = !has_source[v] && descriptions_[v].rfind("Input", 0) == 0;
    const bool is_unused = !is_read[v] && descriptions_[v].rfind("__getitem__", 0) == 0;
    if (is_input || is_unused) continue;
    new_index[v] = static_cast<std::int32_t>(kept.nodes.size());
    kept.nodes.push_back(std::move(problem_.nodes[v]));
  }
  for (const PartitionEdge& edge : problem_.edges) {
    const std::int32_t source = new_index[static_cast<std::size_t>(edge.source)];
    const std::int32_t target = new_index[static_cast<std::size_t>(edge.target)];
    if (source >= 0 && target >= 0) kept.edges.push_back({source, target});
  }
  return kept;
}

PipeDreamProblem PipeDreamReader::read() {
  std::string_view rest = file_.text;
  while (!rest.empty()) {
    ++line_;
    std::string_view line = take_field(rest, "\n");
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    if (line.empty()) continue;
    if (line.front() == '\t')
      read_edge(line.substr(1));
    else
      read_node(line);
  }
  PipeDreamProblem problem = without_inputs_and_unused_items();
  check_pipedream_problem(problem, file_.where);
  return problem;
}

}  // namespace

PipeDreamProblem read_pipedream(const NamedText& file) { return PipeDreamReader(file).read(); }

}  // namespace meshwright
