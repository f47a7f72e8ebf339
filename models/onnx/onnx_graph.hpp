/// An ONNX file as it stands: nodes, attributes, initializers and declared shapes, without weights.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/onnx/graph_tensor.hpp"
#include "models/text/named_text.hpp"

namespace meshwright::onnx {

/// Bytes in another file, in the directory of the model.
struct ExternalData {
  std::string location;
  std::uint64_t offset = 0;
};

/// A tensor with its data, if they are few.
struct TensorLiteral {
  std::string name;
  ElementType type = ElementType::kUndefined;
  Dimensions dims;
  std::optional<std::vector<double>> value;
  std::optional<ExternalData> external;
  std::optional<bool> is_causal_mask;  ///< of possible masks whose data are in the file
};

struct Attribute {
  std::string name;
  std::int64_t integer = 0;
  float real = 0;
  std::string text;
  std::vector<std::int64_t> integers;
  std::vector<float> reals;
  std::vector<std::string> texts;
  std::optional<TensorLiteral> tensor;
  bool has_graph = false;  ///< body of a loop or branch
};

struct Node {
  std::string name, operation, domain;
  std::vector<std::string> inputs, outputs;  ///< names of tensors; "": omitted
  std::vector<Attribute> attributes;
};

/// A dimension without value has a name, or neither.
struct DeclaredDimension {
  std::optional<std::int64_t> value;
  std::string name;
};
struct DeclaredTensor {
  std::string name;
  ElementType type = ElementType::kUndefined;
  std::optional<std::vector<DeclaredDimension>> dims;
};

struct Graph {
  std::vector<Node> nodes;
  std::vector<TensorLiteral> initializers;
  std::vector<DeclaredTensor> inputs, outputs, intermediates;
  std::map<std::string, std::int64_t> opsets;  ///< versions by domain
  std::vector<std::string> functions;          ///< names of functions that the file defines
};

/// Limits of files.
inline constexpr std::size_t kMostNodes = 1'000'000;
inline constexpr std::size_t kMostConnections = 4'000'000;  ///< inputs and outputs of all nodes

/// Throws InputError with the byte offset unless the bytes are an ONNX model with a graph. Memory
/// is proportional to the file.
Graph parse_onnx(std::string_view bytes, const std::string& where);

/// True if the bytes may be an ONNX model: they begin with a field of ModelProto and are not text.
bool looks_like_onnx(std::string_view bytes);

}  // namespace meshwright::onnx
