#include <array>

#include "models/import/import.hpp"
#include "models/import/import_lines.hpp"

namespace meshwright {
namespace {
constexpr std::array<std::string_view, kImportFormatCount> kNames{"nvidia-smi", "nccl-topology",
                                                                  "nccl-tests", "slurm", "kineto"};
}

std::string_view name_of(ImportFormat format) { return kNames[static_cast<std::size_t>(format)]; }

std::optional<ImportFormat> import_format_from_name(std::string_view name) {
  for (std::size_t i = 0; i < kNames.size(); ++i)
    if (kNames[i] == name) return static_cast<ImportFormat>(i);
  return std::nullopt;
}

std::optional<ImportFormat> guess_import_format(std::string_view text) {
  constexpr std::size_t kLooked = 1 << 16;  // the beginning is enough to tell formats apart
  if (text.substr(0, kLooked).find("\"traceEvents\"") != std::string_view::npos ||
      text.substr(0, kLooked).find("\"baseTimeNanoseconds\"") != std::string_view::npos)
    return ImportFormat::kKineto;
  const std::string head = lower_case(text.substr(0, kLooked));
  const auto has = [&](const char* mark) { return head.find(mark) != std::string::npos; };
  if (has("<system")) return ImportFormat::kNcclTopology;
  if (has("switchname=") || has("blockname=")) return ImportFormat::kSlurm;
  const std::size_t first = head.find_first_not_of(" \t\r\n");
  const bool is_json = first != std::string::npos && head[first] == '{';
  if ((is_json && has("\"results\"")) || has("nccl-tests") || has("busbw"))
    return ImportFormat::kNcclTests;
  if (has("gpu0")) return ImportFormat::kNvidiaSmi;
  return std::nullopt;
}

}  // namespace meshwright
