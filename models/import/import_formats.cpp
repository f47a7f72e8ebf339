#include <algorithm>
#include <iterator>

#include "models/import/import.hpp"
#include "models/import/import_lines.hpp"

namespace meshwright {

bool is_kineto(std::string_view head) {
  return contains(head, "\"traceevents\"") || contains(head, "\"basetimenanoseconds\"");
}

bool is_megatron(std::string_view head) {
  if (head.starts_with("{")) return false;  // traces contain command lines too
  return contains(head, "--num-layers") || contains(head, "--tensor-model-parallel-size") ||
         contains(head, "pretrain_gpt.py");
}

bool is_torchtitan(std::string_view head) {
  return contains(head, "[parallelism]") || (contains(head, "[model]") && contains(head, "flavor"));
}

const ImportFormat* find_import_format(std::string_view name) {
  const auto* found = std::ranges::find(kImportFormats, name, &ImportFormat::name);
  return found == std::end(kImportFormats) ? nullptr : found;
}

const ImportFormat* guess_import_format(std::string_view text) {
  constexpr std::size_t kLooked = 1 << 16;  // the beginning is enough to tell formats apart
  const std::string head = lower_case(text.substr(0, kLooked));
  const auto found = std::find_if(std::rbegin(kImportFormats), std::rend(kImportFormats),
                                  [&](const ImportFormat& f) { return f.recognizes(head); });
  return found == std::rend(kImportFormats) ? nullptr : &*found;
}

}  // namespace meshwright
