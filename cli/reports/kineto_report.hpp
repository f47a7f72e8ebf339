/// What `import` learned from a trace, as text and JSON.
#pragma once

#include <string>

#include "cli/terminal/document.hpp"
#include "models/kineto/import_kineto.hpp"

namespace meshwright {

Document kineto_report_text(const ImportedTrace& imported);
/// `file`: where the calibration was written.
std::string kineto_report_json(const ImportedTrace& imported, const std::string& file);

}  // namespace meshwright
