/// What the system says about this machine.
#pragma once

#include <optional>
#include <string>

#include "core/base/units.hpp"

namespace meshwright {

std::string processor_name();        ///< "AMD EPYC 7763 64-Core Processor"
int core_count();                    ///< at least 1
std::optional<Bytes> host_memory();  ///< physical
/// Processes competing for the cores in the last minute.
std::optional<double> load_average();

}  // namespace meshwright
