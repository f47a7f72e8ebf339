#include <algorithm>
#include <array>

#include "core/base/error.hpp"
#include "core/base/json_scanner.hpp"
#include "models/graphs/graph_files.hpp"

namespace meshwright {
namespace {

/// Top-level keys that only files of Piper have.
constexpr std::array<std::string_view, 4> kPiperKeys = {"maxDevices", "maxMemoryPerDevice",
                                                        "mbsInBatch", "bandwidth"};
constexpr std::array<std::string_view, 4> kDnnPartitioningKeys = {"maxFPGAs", "maxCPUs",
                                                                  "maxSizePerFPGA", "nodes"};

template <std::size_t n>
bool is_one_of(const std::array<std::string_view, n>& keys, std::string_view key) {
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

/// Its first line is a node with its costs.
bool is_pipedream(std::string_view text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  return line.find(" -- ") != std::string_view::npos &&
         line.find("forward_compute_time=") != std::string_view::npos;
}

}  // namespace

OperatorGraph read_operator_graph(const NamedText& file) {
  if (is_pipedream(file.text)) return read_pipedream(file);
  const std::size_t first = file.text.find_first_not_of(" \t\r\n");
  bool is_piper = false, is_dnn_partitioning = false, is_iopddl = false;
  JsonScanner scanner(file.text, file.where);
  if (first != std::string::npos && file.text[first] == '{')
    scanner.for_each_member([&](std::string_view key) {
      is_piper = is_piper || is_one_of(kPiperKeys, key);
      is_dnn_partitioning = is_dnn_partitioning || is_one_of(kDnnPartitioningKeys, key);
      is_iopddl = is_iopddl || key == "problem";
      scanner.skip();
    });
  if (is_piper) return read_piper(file);
  if (is_iopddl) return read_iopddl(file);
  if (is_dnn_partitioning) return read_dnn_partitioning(file);
  throw InputError(
      {file.where, "unrecognized format of an operator graph",
       "give JSON of msr-fiddle/dnn-partitioning, of msr-fiddle/piper or of IOPDDL, or graph.txt "
       "of PipeDream"});
}

}  // namespace meshwright
