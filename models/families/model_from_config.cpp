#include <fmt/format.h>

#include <algorithm>

#include "models/builders/transformer_builder.hpp"
#include "models/families/config_reader.hpp"
#include "models/families/load_model.hpp"
#include "models/families/mlp_builder.hpp"
#include "models/families/transformer_families.hpp"

namespace meshwright {
namespace {

using nlohmann::json;

constexpr std::string_view kToyFamily = "mlp";

std::vector<std::string> known_families() {
  std::vector<std::string> names = transformer_families();
  names.emplace_back(kToyFamily);
  std::sort(names.begin(), names.end());
  return names;
}

/// The object with the language model, and its JSON pointer.
struct Described {
  const json* object;
  std::string where;
};

std::optional<std::string> text_at(const json& object, const char* key) {
  const auto it = object.find(key);
  if (it == object.end() || !it->is_string()) return std::nullopt;
  return it->get<std::string>();
}

std::optional<std::string> architecture_of(const json& object) {
  const auto it = object.find("architectures");
  if (it == object.end() || !it->is_array() || it->empty() || !it->front().is_string())
    return std::nullopt;
  return it->front().get<std::string>();
}

/// Heads other than that of a language model have another loss.
void refuse_other_heads(const json& root, const std::string& where) {
  const std::optional<std::string> architecture = architecture_of(root);
  if (!architecture) return;
  const std::size_t head = architecture->rfind("For");
  if (head == std::string::npos || architecture->ends_with("ForCausalLM") ||
      architecture->ends_with("ForMaskedLM"))
    return;
  throw InputError(
      {fmt::format("{}#/architectures/0", where),
       fmt::format("'{}' is not supported: only language models are", architecture->substr(head)),
       "set \"architectures\" to the class that ends in ForCausalLM, if the model is to "
       "be trained as a language model"});
}

/// The object of the language model. Multimodal models have it inside, beside other parts.
Described language_part(const json& root, const std::string& where) {
  for (const char* key : {"text_config", "llm_config"}) {
    const auto nested = root.find(key);
    if (nested == root.end() || !nested->is_object()) continue;
    throw InputError(
        {fmt::format("{}#/{}", where, key),
         fmt::format("model_type {} is not supported: it has other parts than a language model",
                     shown(root.value("model_type", json()))),
         fmt::format("save the object '{}' as a file to train the language model alone", key)});
  }
  refuse_other_heads(root, where);
  return {&root, fmt::format("{}#", where)};
}

/// model_type decides, then architectures[0].
std::string family_of(const Described& part) {
  const std::vector<std::string> known = known_families();
  const std::optional<std::string> type = text_at(*part.object, "model_type");
  if (type && std::find(known.begin(), known.end(), *type) != known.end()) return *type;
  const std::optional<std::string> architecture = architecture_of(*part.object);
  if (architecture)
    if (const auto family = family_of_architecture(*architecture)) return *family;
  if (type)
    throw InputError({fmt::format("{}/model_type", part.where),
                      fmt::format("unknown model_type {}", shown(json(*type))),
                      suggest(*type, known)});
  if (architecture)
    throw InputError({fmt::format("{}/architectures/0", part.where),
                      fmt::format("unknown architecture {}", shown(json(*architecture))),
                      fmt::format("set \"model_type\" to one of: {}", fmt::join(known, ", "))});
  throw InputError({part.where, "missing key 'model_type'",
                    fmt::format("set \"model_type\" to one of: {}", fmt::join(known, ", "))});
}

/// Quantized files have the architecture of the model that was trained.
std::vector<Diagnostic> warnings_of(ConfigReader& reader, const Described& part) {
  constexpr const char* kQuantization = "quantization_config";
  reader.ignore({kQuantization});
  std::vector<Diagnostic> warnings = reader.warnings_about_unknown_keys();
  if (const auto found = part.object->find(kQuantization);
      found != part.object->end() && found->is_object())
    warnings.push_back({fmt::format("{}/{}", part.where, kQuantization),
                        "ignored: training uses unquantized weights",
                        "choose their type with --dtype"});
  return warnings;
}

}  // namespace

LoadedModel load_model(const NamedText& config) {
  const json root = parse_config(config);
  const Described part = language_part(root, config.where);
  const std::string family = family_of(part);
  ConfigReader reader(*part.object, part.where);
  if (family == kToyFamily) {
    const MlpConfig toy = read_mlp(reader);
    reader.throw_complaints();
    return {build_mlp(toy, config.name, part.where), reader.warnings_about_unknown_keys()};
  }
  const TransformerConfig transformer = read_transformer(family, reader);
  reader.throw_complaints();
  return {build_transformer(transformer, config.name, family, part.where),
          warnings_of(reader, part)};
}

std::optional<LoadedTransformer> load_transformer(const NamedText& config) {
  const json root = parse_config(config);
  const Described part = language_part(root, config.where);
  std::string family = family_of(part);
  if (family == kToyFamily) return std::nullopt;
  ConfigReader reader(*part.object, part.where);
  TransformerConfig transformer = read_transformer(family, reader);
  reader.throw_complaints();
  return LoadedTransformer{std::move(family), std::move(transformer), part.object->dump()};
}

ModelGraph model_from_config(const NamedText& config) { return load_model(config).graph; }

}  // namespace meshwright
