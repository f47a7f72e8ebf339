/// Models and clusters by preset name or file.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/cluster.hpp"
#include "core/model_graph.hpp"

namespace meshwright {

/// A source text together with where it is from: what plan files embed.
struct NamedText {
  std::string name;   ///< preset name, or the file's stem
  std::string where;  ///< for messages: the path, or "preset NAME"
  std::string text;   ///< config.json or cluster TOML
  friend bool operator==(const NamedText&, const NamedText&) = default;
};

/// A preset name; else a path, if it contains '/', ends in .json (.toml), exists, or is "-" for
/// standard input. Unknown: InputError with near names and how to pass a file. The cluster
/// `this-machine` is what `calibrate` measured (this_machine.hpp).
NamedText find_model(const std::string& name_or_path);
NamedText find_cluster(const std::string& name_or_path);
std::vector<std::string> model_preset_names();    ///< sorted
std::vector<std::string> cluster_preset_names();  ///< sorted

/// HuggingFace config.json → graph. InputError names key, value and what is expected.
ModelGraph model_from_config(const NamedText& config);
/// Cluster TOML → Cluster, checked by check_cluster().
Cluster cluster_from_toml(const NamedText& toml);

}  // namespace meshwright
