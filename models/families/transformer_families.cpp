#include "models/families/transformer_families.hpp"

#include <algorithm>

#include "core/base/check.hpp"
#include "models/families/dialects.hpp"

namespace meshwright {
namespace {

std::vector<Family> families() {
  std::vector<Family> all;
  for (const auto rows :
       {dense_families(), gemma_families(), parallel_families(), expert_families()})
    all.insert(all.end(), rows.begin(), rows.end());
  return all;
}

}  // namespace

std::vector<std::string> transformer_families() {
  std::vector<std::string> names;
  for (const Family& family : families()) names.emplace_back(family.model_type);
  std::sort(names.begin(), names.end());
  return names;
}

std::optional<std::string> family_of_architecture(const std::string& architecture) {
  for (const Family& family : families())
    if (family.architecture == architecture) return std::string(family.model_type);
  return std::nullopt;
}

TransformerConfig read_transformer(const std::string& family_name, ConfigReader& reader) {
  const std::vector<Family> known = families();
  const auto family = std::ranges::find(known, family_name, &Family::model_type);
  MW_CHECK(family != known.end());
  return family->read(*family, reader);
}

}  // namespace meshwright
