#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "core/base/error.hpp"
#include "core/formats/file.hpp"
#include "models/load/load.hpp"
#include "models/load/published_runs.hpp"
#include "models/load/trainer_toml.hpp"
#include "models/text/presets.hpp"

namespace meshwright {
namespace {

/// Configurations have a few kilobytes, thousands of published runs one megabyte.
constexpr std::size_t kLargestFile = std::size_t{16} << 20;

/// The presets of one kind, and how files of that kind are named.
struct Shelf {
  std::string_view noun;       ///< "model"
  std::string_view file_kind;  ///< "a HuggingFace config.json"
  std::string_view example;    ///< a path, for the hint
  std::string_view long_suffix, suffix;
  std::span<const EmbeddedText> presets;
};

std::vector<std::string> names_on(const Shelf& shelf) {
  std::vector<std::string> names;
  for (const EmbeddedText& preset : shelf.presets) names.emplace_back(preset.name);
  return names;
}

bool is_path(const std::string& text, const Shelf& shelf) {
  if (text == "-" || text.find('/') != std::string::npos || text.ends_with(shelf.suffix))
    return true;
  std::error_code error;
  return std::filesystem::exists(text, error);
}

/// "dir/llama-3.1-8b.config.json" → "llama-3.1-8b"; "llama/config.json" → "llama".
std::string stem_of(const std::string& path, const Shelf& shelf) {
  if (path == "-") return "stdin";
  const std::filesystem::path file(path);
  std::string stem = file.filename().string();
  for (const std::string_view suffix : {shelf.long_suffix, shelf.suffix})
    if (stem.size() > suffix.size() && stem.ends_with(suffix)) {
      stem.resize(stem.size() - suffix.size());
      break;
    }
  const std::string folder = file.parent_path().filename().string();
  return stem == "config" && !folder.empty() && folder != "." && folder != ".." ? folder : stem;
}

NamedText find_on(const Shelf& shelf, const std::string& name_or_path) {
  for (const EmbeddedText& preset : shelf.presets)
    if (preset.name == name_or_path)
      return {name_or_path, fmt::format("preset {}", name_or_path), std::string(preset.text)};
  if (is_path(name_or_path, shelf))
    return {stem_of(name_or_path, shelf), name_or_path == "-" ? "standard input" : name_or_path,
            read_file(name_or_path, kLargestFile)};
  throw InputError(
      {name_or_path, fmt::format("unknown {} '{}'", shelf.noun, name_or_path),
       fmt::format("{} (for {}, give a path such as {})", suggest(name_or_path, names_on(shelf)),
                   shelf.file_kind, shelf.example)});
}

Shelf models() {
  return {"model",          "a HuggingFace config.json", "./config.json", ".config.json", ".json",
          embedded_models()};
}
Shelf clusters() {
  return {"cluster",       "a cluster file", "./cluster.toml",
          ".cluster.toml", ".toml",          embedded_clusters()};
}
Shelf trainers() {
  return {"trainer", "a trainer profile", "./trainer.toml", ".trainer.toml",
          ".toml",   embedded_trainers()};
}
Shelf collectives() {
  return {"collectives",
          "a file of measured collectives",
          "./collectives.toml",
          ".collectives.toml",
          ".toml",
          embedded_collectives()};
}
Shelf devices() {
  return {"device", "a device file", "./device.toml", ".device.toml", ".toml", embedded_devices()};
}

Shelf published_sets() {
  return {
      "set of published runs",  "a file of published runs", "./runs.toml", ".runs.toml", ".toml",
      embedded_published_sets()};
}

}  // namespace

NamedText find_model(const std::string& name_or_path) { return find_on(models(), name_or_path); }
NamedText find_device_file(const std::string& name_or_path) {
  return find_on(devices(), name_or_path);
}
NamedText find_cluster_file(const std::string& name_or_path) {
  return find_on(clusters(), name_or_path);
}
NamedText find_trainer(const std::string& name_or_path) {
  return find_on(trainers(), name_or_path);
}
std::vector<std::string> trainer_preset_names() { return names_on(trainers()); }
NamedText find_collectives_file(const std::string& name_or_path) {
  return find_on(collectives(), name_or_path);
}
std::vector<std::string> collectives_preset_names() { return names_on(collectives()); }
std::vector<std::string> device_preset_names() { return names_on(devices()); }
NamedText find_published_set(const std::string& name_or_path) {
  return find_on(published_sets(), name_or_path);
}
bool names_published_run(std::string_view text) {
  const std::string_view set = text.substr(0, text.rfind('#'));
  if (set.size() == text.size()) return false;
  const std::vector<std::string> names = published_set_names();
  return set.ends_with(".toml") || std::find(names.begin(), names.end(), set) != names.end();
}
std::vector<std::string> model_preset_names() { return names_on(models()); }
std::vector<std::string> cluster_preset_names() { return names_on(clusters()); }
std::vector<std::string> published_set_names() { return names_on(published_sets()); }

}  // namespace meshwright
