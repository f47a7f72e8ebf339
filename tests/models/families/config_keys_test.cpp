/// The table of tests/validation/transformers_keys.md, measured with transformers: what each key of
/// a configuration class does. Used keys change the model, refused keys stop, and none is unknown.
/// (Keys without effect in the table may have one on longer sequences.)
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "core/formats/file.hpp"
#include "models/load/load.hpp"

namespace meshwright {
namespace {

using Json = nlohmann::json;

struct KeyRow {
  std::string key, effect;
  Json value;
};

struct KeyTable {
  std::string model_type;
  Json settings;
  std::vector<KeyRow> rows;
  friend void PrintTo(const KeyTable& table, std::ostream* out) { *out << table.model_type; }
};

/// "| rope_theta = 5000.0 | used |"
KeyRow row_of(const std::string& line) {
  const std::size_t equals = line.find(" = "), bar = line.rfind(" | ");
  return {.key = line.substr(2, equals - 2),
          .effect = line.substr(bar + 3, line.size() - bar - 5),
          .value = Json::parse(line.substr(equals + 3, bar - equals - 3))};
}

std::vector<KeyTable> tables() {
  std::istringstream lines(
      read_file(MESHWRIGHT_SOURCE_DIR "/tests/validation/transformers_keys.md"));
  std::vector<KeyTable> tables;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("## ")) tables.push_back({line.substr(3), {}, {}});
    if (line.starts_with("`{"))
      tables.back().settings = Json::parse(line.substr(1, line.size() - 2));
    if (line.starts_with("| ") && line.find(" = ") != std::string::npos)
      tables.back().rows.push_back(row_of(line));
  }
  return tables;
}

LoadedModel load(const KeyTable& table, const KeyRow* changed) {
  Json config = table.settings;
  config["model_type"] = table.model_type;
  if (changed != nullptr) config[changed->key] = changed->value;
  return load_model({table.model_type, "config.json", config.dump()});
}

/// nullopt: the key has another name in the settings, which transformers would not write.
std::optional<LoadedModel> load_or_conflict(const KeyTable& table, const KeyRow& row) {
  try {
    return load(table, &row);
  } catch (const InputError& error) {
    if (format(error.diagnostics().front()).find("conflicts with") == std::string::npos) throw;
    return std::nullopt;
  }
}

class ConfigKeys : public testing::TestWithParam<KeyTable> {};

TEST_P(ConfigKeys, HaveTheEffectThatTransformersGivesThem) {
  const LoadedModel plain = load(GetParam(), nullptr);
  ASSERT_GT(GetParam().rows.size(), 10u);
  for (const KeyRow& row : GetParam().rows) {
    SCOPED_TRACE(row.key + ": " + row.effect);
    if (row.effect.starts_with("transformers")) continue;
    if (row.effect == "refused") {
      EXPECT_THROW(load(GetParam(), &row), InputError);
      continue;
    }
    const std::optional<LoadedModel> changed = load_or_conflict(GetParam(), row);
    if (!changed) continue;
    if (row.effect.starts_with("used") && row.key != "dtype") {  // that of the weights in files
      EXPECT_NE(changed->graph, plain.graph);
    }
    for (const Diagnostic& warning : changed->warnings)
      EXPECT_EQ(warning.where.find("/" + row.key), std::string::npos) << warning.what;
  }
}

INSTANTIATE_TEST_SUITE_P(Families, ConfigKeys, testing::ValuesIn(tables()),
                         [](const auto& instance) { return instance.param.model_type; });

}  // namespace
}  // namespace meshwright
