/// Models, devices and clusters by preset name or file.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/cluster/cluster.hpp"
#include "models/families/load_model.hpp"
#include "models/text/named_text.hpp"

namespace meshwright {

/// Accepts a preset name, or a path: it contains '/', ends in .json (.toml), exists, or is "-" for
/// standard input. Otherwise throws InputError with the nearest preset names. The cluster
/// `this-machine` is built from its calibration (this_machine.hpp).
///
/// A cluster or device that refers to others (resolve_references.hpp) is checked, and written out
/// with all that it refers to: the text stands for itself.
NamedText find_model(const std::string& name_or_path);
NamedText find_cluster(const std::string& name_or_path);
NamedText find_device(const std::string& name_or_path);
/// The text as it is in the file, with its references.
NamedText find_cluster_file(const std::string& name_or_path);
NamedText find_device_file(const std::string& name_or_path);
/// Measured collectives of a device and its local network (models/collectives/nvlink4.toml), or of
/// a network between nodes (infiniband.toml): `collectives = "NAME"` in a device or in [fabric].
NamedText find_collectives_file(const std::string& name_or_path);
/// True if a TOML file describes a device, or changes one; false: a cluster.
bool describes_device(const NamedText& toml);
std::vector<std::string> model_preset_names();        ///< sorted
std::vector<std::string> cluster_preset_names();      ///< sorted
std::vector<std::string> collectives_preset_names();  ///< sorted
std::vector<std::string> device_preset_names();       ///< sorted

struct LoadedDevice {
  DeviceModel device;
  std::map<std::string, std::string> sources;  ///< "gemm.max_efficiency" → source of the figure
};
/// Reads a device file (TOML) and checks it with check_device(). May refer to presets.
LoadedDevice device_from_toml(const NamedText& toml);
/// A device file that device_from_toml() reads back as equal. Notes become comments at the top.
std::string device_to_toml(const LoadedDevice& loaded, const std::vector<std::string>& notes = {});
/// Reads a cluster file (TOML) and checks it with check_cluster(). May refer to presets; files are
/// opened by find_cluster() only.
Cluster cluster_from_toml(const NamedText& toml);
/// A cluster file that cluster_from_toml() reads back as an equal cluster. Notes become comments at
/// the top.
std::string cluster_to_toml(const Cluster& cluster, const std::vector<std::string>& notes = {});

}  // namespace meshwright
