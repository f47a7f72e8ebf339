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

}  // namespace

OperatorGraph read_operator_graph(const NamedText& file) {
  bool is_piper = false, is_dnn_partitioning = false;
  JsonScanner scanner(file.text, file.where);
  if (scanner.next() == JsonScanner::Kind::kObject)
    scanner.for_each_member([&](std::string_view key) {
      is_piper = is_piper || is_one_of(kPiperKeys, key);
      is_dnn_partitioning = is_dnn_partitioning || is_one_of(kDnnPartitioningKeys, key);
      scanner.skip();
    });
  if (is_piper) return read_piper(file);
  if (is_dnn_partitioning) return read_dnn_partitioning(file);
  throw InputError({file.where, "unrecognized format of an operator graph",
                    "give JSON of msr-fiddle/dnn-partitioning or msr-fiddle/piper"});
}

}  // namespace meshwright
