#include "executor/checkpoint/external_weights.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "core/base/check.hpp"
#include "core/base/error.hpp"
#include "core/base/json_value.hpp"
#include "core/formats/file.hpp"
#include "executor/checkpoint/checkpoint_parts.hpp"

namespace meshwright {
namespace {

constexpr std::string_view kSingleFile = "model.safetensors";
constexpr std::string_view kIndexFile = "model.safetensors.index.json";

/// A parameter as a stack of matrices: [slices, rows, columns].
struct Extents {
  std::int64_t slices = 1, rows = 1, columns = 1;
};
Extents extents_of(const ParameterTensor& parameter, const WeightPart& part) {
  const std::vector<std::int64_t>& shape = parameter.shape;
  Extents extents{.columns = shape.back()};
  if (part.expert >= 0) extents.slices = shape.front();
  for (std::size_t d = part.expert >= 0 ? 1 : 0; d + 1 < shape.size(); ++d)
    extents.rows *= shape[d];
  return extents;
}

/// All parts that one tensor of a file is made of.
struct Use {
  const Tensor* parameter;
  const WeightPart* part;
};
using Uses = std::map<std::string, std::vector<Use>, std::less<>>;
Uses uses_of(const ModelGraph& model, const WeightLayout& layout) {
  Uses uses;
  for_each_parameter(model, [&](const Tensor& tensor, const ParameterTensor&) {
    for (const WeightPart& part : layout.at(tensor.name))
      uses[part.tensor].push_back({&tensor, &part});
  });
  return uses;
}

std::int64_t columns_in_file(const std::vector<Use>& uses) {
  std::int64_t columns = 0;
  for (const Use& use : uses) columns += use.part->columns;
  return columns;
}

/// Shape of a tensor in a file.
std::vector<std::int64_t> shape_in_file(const std::vector<Use>& uses) {
  const WeightPart& part = *uses.front().part;
  const auto& parameter = std::get<ParameterTensor>(uses.front().parameter->shape);
  std::vector<std::int64_t> shape = parameter.shape;
  if (part.expert >= 0) shape.erase(shape.begin());
  shape.back() = columns_in_file(uses);
  if (part.transposed) std::swap(shape[0], shape[1]);
  return shape;
}

/// Calls visit(index in the parameter, index in the file) for all elements of a part.
template <class Visit>
void for_each_element_of(const Use& use, std::int64_t columns, const Visit& visit) {
  const WeightPart& part = *use.part;
  const Extents e = extents_of(std::get<ParameterTensor>(use.parameter->shape), part);
  const std::int64_t slice = std::max<std::int64_t>(part.expert, 0);
  for (std::int64_t row = 0; row < e.rows; ++row)
    for (std::int64_t j = 0; j < part.columns; ++j) {
      const std::int64_t ours = (slice * e.rows + row) * e.columns + part.first + j;
      const std::int64_t column = part.column_in_file(j);
      visit(static_cast<std::size_t>(ours),
            static_cast<std::size_t>(part.transposed ? column * e.rows + row
                                                     : row * columns + column));
    }
}

// ---- reading ------------------------------------------------------------------------------------

/// The files of a sharded checkpoint.
std::vector<std::string> files_of_index(const std::string& path) {
  const JsonValue index = parse_json(read_file(path), path);
  std::vector<Diagnostic> problems;
  JsonObjectReader reader(index, path, problems);
  const JsonValue* map = reader.required("weight_map");
  throw_if_any(problems);
  const auto* members = map->as<JsonObject>();
  std::set<std::string> names;
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  for (const JsonMember& member : members == nullptr ? JsonObject{} : *members) {
    const auto* name = member.value.as<std::string>();
    if (name == nullptr || name->empty() || name->find('/') != std::string::npos)
      throw InputError({fmt::format("{}#/weight_map/{}", path, pointer_token(member.key)),
                        fmt::format("expected the name of a file, got {}", describe(member.value)),
                        "use the index that was downloaded with the files"});
    names.insert((folder / *name).string());
  }
  if (names.empty())
    throw InputError({path + "#/weight_map", "expected an object with at least one tensor", ""});
  return {names.begin(), names.end()};
}

std::vector<std::string> files_at(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  if (!fs::is_directory(path, ignored))
    return path.ends_with(".json") ? files_of_index(path) : std::vector{path};
  const fs::path folder(path), index = folder / kIndexFile, single = folder / kSingleFile;
  if (fs::exists(index, ignored)) return files_of_index(index.string());
  if (fs::exists(single, ignored)) return {single.string()};
  throw InputError({path, fmt::format("no {} or {} in this folder", kSingleFile, kIndexFile),
                    "set a folder written by save_pretrained() of transformers, or a file"});
}

}  // namespace

ExternalWeights::ExternalWeights(const std::string& path, const ModelGraph& model,
                                 WeightLayout layout)
    : layout_(std::move(layout)) {
  const Uses uses = uses_of(model, layout_);
  std::map<std::string, std::string, std::less<>> without_prefix;
  for (const auto& [name, of] : uses)
    if (const std::size_t dot = name.find('.'); dot != std::string::npos)
      without_prefix[name.substr(dot + 1)] = name;
  std::vector<Diagnostic> problems;
  for (const std::string& file : files_at(path)) {
    files_.emplace_back(file);
    for (const SafetensorsFile::Entry& entry : files_.back().entries()) {
      auto found = uses.find(entry.name);
      if (found == uses.end())
        if (const auto full = without_prefix.find(entry.name); full != without_prefix.end())
          found = uses.find(full->second);
      if (found == uses.end()) {
        unused_.push_back(entry.name);
        continue;
      }
      places_[found->first] = {files_.size() - 1, entry, columns_in_file(found->second)};
      if (const auto expected = shape_in_file(found->second); entry.shape != expected)
        problems.push_back({fmt::format("{}#/{}", file, entry.name),
                            fmt::format("shape mismatch: expected [{}], got [{}]",
                                        fmt::join(expected, ", "), fmt::join(entry.shape, ", ")),
                            "set the weights of the model in --model"});
    }
  }
  constexpr std::size_t kMostProblems = 10;
  for (const auto& [name, of] : uses)
    if (!places_.contains(name) && problems.size() < kMostProblems)
      problems.push_back({path, fmt::format("missing tensor '{}'", name), suggest(name, unused_)});
  throw_if_any(problems);
}

std::vector<float> ExternalWeights::values(const Tensor& parameter) const {
  std::vector<float> values(
      static_cast<std::size_t>(elements_of(std::get<ParameterTensor>(parameter.shape))));
  const std::string* in_memory = nullptr;
  std::vector<float> tensor;
  for (const WeightPart& part : layout_.at(parameter.name)) {
    const Place& place = places_.at(part.tensor);
    if (in_memory == nullptr || *in_memory != part.tensor) {
      tensor.clear();
      tensor.shrink_to_fit();
      tensor = files_[place.file].values(place.entry);
      in_memory = &part.tensor;
    }
    for_each_element_of(
        {&parameter, &part}, place.columns,
        [&](std::size_t ours, std::size_t theirs) { values[ours] = tensor[theirs]; });
  }
  return values;
}

Checkpoint to_checkpoint(const ExternalWeights& weights, const ModelGraph& model) {
  Checkpoint checkpoint;
  for_each_parameter(model, [&](const Tensor& tensor, const ParameterTensor&) {
    checkpoint.parameters[tensor.name].weights = weights.values(tensor);
  });
  return checkpoint;
}

void write_model_directory(const std::string& path, const std::string& model_config) {
  const std::filesystem::path directory = std::filesystem::path(path).parent_path();
  std::error_code failure;
  std::filesystem::create_directories(directory, failure);
  if (failure)
    throw RuntimeFailure(Diagnostic{directory.string(),
                                    fmt::format("cannot create: {}", failure.message()),
                                    "choose a directory that can be written"});
  write_file((directory / "config.json").string(), model_config);
}

std::string to_external_file(const Checkpoint& checkpoint, const ModelGraph& model,
                             const WeightLayout& layout) {
  TensorFile file;
  file.metadata = {{"format", "pt"}};
  for (const auto& [name, uses] : uses_of(model, layout)) {
    const std::int64_t columns = columns_in_file(uses);
    NamedTensor tensor{name, shape_in_file(uses), {}};
    std::int64_t count = 1;
    for (const std::int64_t extent : tensor.shape) count *= extent;
    tensor.values.resize(static_cast<std::size_t>(count));
    for (const Use& use : uses) {
      const std::vector<float>& from = checkpoint.parameters.at(use.parameter->name).weights;
      for_each_element_of(use, columns, [&](std::size_t ours, std::size_t theirs) {
        tensor.values[theirs] = from[ours];
      });
    }
    file.tensors.push_back(std::move(tensor));
  }
  return to_safetensors(file);
}

}  // namespace meshwright
