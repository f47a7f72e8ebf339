/// Cluster and device files that build on others.
///
///   extends = "dgx-a100"          the whole file, with the keys of this one changed: tables are
///                                 merged key by key, values and arrays are replaced
///   [nodes.X] device = "l4"       a device file; becomes the table [devices.l4]
///   [devices.X] extends = "l4"    a device file with changed keys
///   [devices.l4] memory = …       the same without `extends`, if the table is not a whole device
///   collectives = "nvlink4"       in a device or in [fabric]: becomes the table of that file
///
/// and device files may extend others likewise. References are preset names, or paths relative to
/// the file that contains them. The name and the published runs of an extended file are not taken
/// over. A changed value has the source given next to it, else "changed in FILE"; what a device
/// file takes over is marked "scaled from NAME by datasheet: …".
#pragma once

#include <toml++/toml.h>

#include <cstdint>

#include "models/text/named_text.hpp"

namespace meshwright {

enum class References : std::uint8_t {
  kPresetsAndFiles,
  kPresets  ///< for text that must not open files: clusters embedded in plans
};

/// A file without references. Nodes keep the position and path of the file they were read from.
struct ResolvedToml {
  toml::table table;
  bool had_references = false;
};

/// Throws InputError at the reference (file:line:column) for unknown names, with the nearest ones,
/// for cycles and for chains of more than 16 files; at the changed table if the extended file has
/// no such node or device.
ResolvedToml resolve_cluster(const NamedText& file, References allowed);
ResolvedToml resolve_device(const NamedText& file, References allowed);

}  // namespace meshwright
