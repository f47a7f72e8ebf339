/// One device inside a cluster file or a file of its own; shared by both loaders and both writers.
#pragma once

#include <map>
#include <string>

#include "core/cluster/device.hpp"
#include "models/text/toml_reader.hpp"

namespace meshwright {

/// Reads the keys of a device table: its datasheet, and the parameters of its kernel models, all of
/// which may be absent. `key` is the name of a device without one.
DeviceModel read_device(const std::string& key, TomlReader& reader);

/// The keys of a device in the order that read_device() describes. Headers are "[prefix.gemm]", or
/// "[gemm]" with an empty prefix; `path` is the prefix of its keys in `sources`.
struct DeviceTextPlace {
  std::string prefix, path;
};
std::string device_text(const DeviceModel& device, const DeviceTextPlace& place,
                        const std::map<std::string, std::string>& sources);

}  // namespace meshwright
