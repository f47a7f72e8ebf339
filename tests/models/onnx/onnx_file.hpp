/// ONNX files for tests, written field by field.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <protozero/pbf_writer.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "models/onnx/onnx.hpp"
#include "models/onnx/onnx_fields.hpp"
#include "models/onnx/onnx_graph.hpp"

namespace meshwright {

using OnnxDimension = std::variant<std::int64_t, std::string>;
using OnnxAttributeValue = std::variant<std::int64_t, std::string, std::vector<std::int64_t>>;

struct OnnxNodeText {
  std::string operation;
  std::vector<std::string> inputs = {}, outputs = {};
  std::vector<std::pair<std::string, OnnxAttributeValue>> attributes = {};
  std::string name = {}, domain = {};
};

class OnnxFile {
 public:
  OnnxFile& input(const std::string& name, const std::vector<OnnxDimension>& dims,
                  onnx::ElementType type = onnx::ElementType::kFloat) {
    protozero::pbf_writer graph(graph_);
    protozero::pbf_writer info(graph, onnx::graph::kInput);
    write_info(info, name, dims, type);
    return *this;
  }
  OnnxFile& value_info(const std::string& name, const std::vector<OnnxDimension>& dims) {
    protozero::pbf_writer graph(graph_);
    protozero::pbf_writer info(graph, onnx::graph::kValueInfo);
    write_info(info, name, dims, onnx::ElementType::kFloat);
    return *this;
  }
  /// Without data: weights are not read.
  OnnxFile& weight(const std::string& name, const std::vector<std::int64_t>& dims) {
    protozero::pbf_writer graph(graph_);
    protozero::pbf_writer tensor(graph, onnx::graph::kInitializer);
    for (const std::int64_t dim : dims) tensor.add_int64(onnx::tensor::kDims, dim);
    tensor.add_int32(onnx::tensor::kDataType, static_cast<int>(onnx::ElementType::kFloat));
    tensor.add_string(onnx::tensor::kName, name);
    return *this;
  }
  OnnxFile& scalar(const std::string& name, double value) {
    protozero::pbf_writer graph(graph_);
    protozero::pbf_writer tensor(graph, onnx::graph::kInitializer);
    tensor.add_int32(onnx::tensor::kDataType, static_cast<int>(onnx::ElementType::kFloat));
    tensor.add_string(onnx::tensor::kName, name);
    const std::vector<float> values{static_cast<float>(value)};
    tensor.add_packed_float(onnx::tensor::kFloatData, values.begin(), values.end());
    return *this;
  }
  /// Booleans in another file.
  OnnxFile& external_mask(const std::string& name, const std::vector<std::int64_t>& dims,
                          const std::string& location, std::int64_t offset) {
    protozero::pbf_writer graph(graph_);
    protozero::pbf_writer tensor(graph, onnx::graph::kInitializer);
    for (const std::int64_t dim : dims) tensor.add_int64(onnx::tensor::kDims, dim);
    tensor.add_int32(onnx::tensor::kDataType, static_cast<int>(onnx::ElementType::kBool));
    tensor.add_string(onnx::tensor::kName, name);
    for (const auto& [key, value] :
         {std::pair("location", location), std::pair("offset", std::to_string(offset))}) {
      protozero::pbf_writer entry(tensor, onnx::tensor::kExternalData);
      entry.add_string(onnx::entry::kKey, key);
      entry.add_string(onnx::entry::kValue, value);
    }
    return *this;
  }
  OnnxFile& output(const std::string& name) {
    protozero::pbf_writer graph(graph_);
    protozero::pbf_writer info(graph, onnx::graph::kOutput);
    info.add_string(onnx::value_info::kName, name);
    return *this;
  }
  /// A vector of int64, such as a shape.
  OnnxFile& integers(const std::string& name, const std::vector<std::int64_t>& values) {
    protozero::pbf_writer graph(graph_);
    protozero::pbf_writer tensor(graph, onnx::graph::kInitializer);
    tensor.add_int64(onnx::tensor::kDims, static_cast<std::int64_t>(values.size()));
    tensor.add_int32(onnx::tensor::kDataType, static_cast<int>(onnx::ElementType::kInt64));
    tensor.add_string(onnx::tensor::kName, name);
    tensor.add_packed_int64(onnx::tensor::kInt64Data, values.begin(), values.end());
    return *this;
  }
  OnnxFile& node(const OnnxNodeText& text) {
    protozero::pbf_writer graph(graph_);
    protozero::pbf_writer node(graph, onnx::graph::kNode);
    for (const std::string& name : text.inputs) node.add_string(onnx::node::kInput, name);
    for (const std::string& name : text.outputs) node.add_string(onnx::node::kOutput, name);
    if (!text.name.empty()) node.add_string(onnx::node::kName, text.name);
    node.add_string(onnx::node::kOpType, text.operation);
    if (!text.domain.empty()) node.add_string(onnx::node::kDomain, text.domain);
    for (const auto& [name, value] : text.attributes) {
      protozero::pbf_writer attribute(node, onnx::node::kAttribute);
      attribute.add_string(onnx::attribute::kName, name);
      write_value(attribute, value);
    }
    return *this;
  }
  /// The body of a loop or a branch: an attribute that is a graph.
  OnnxFile& control_flow(const std::string& operation, const std::string& output) {
    protozero::pbf_writer graph(graph_);
    protozero::pbf_writer node(graph, onnx::graph::kNode);
    node.add_string(onnx::node::kOutput, output);
    node.add_string(onnx::node::kOpType, operation);
    protozero::pbf_writer attribute(node, onnx::node::kAttribute);
    attribute.add_string(onnx::attribute::kName, "body");
    attribute.add_message(onnx::attribute::kGraph, std::string());
    return *this;
  }

  const std::string& graph() const { return graph_; }
  std::string bytes() const {
    std::string file;
    protozero::pbf_writer model(file);
    model.add_int64(onnx::model::kIrVersion, 8);
    model.add_message(onnx::model::kGraph, graph_);
    return file;
  }
  KernelGraph read(const OnnxOptions& options = {.dtype = Dtype::kFp32}) const {
    return read_onnx({.name = "m", .where = "m.onnx", .text = bytes()}, options);
  }

 private:
  static void write_info(protozero::pbf_writer& info, const std::string& name,
                         const std::vector<OnnxDimension>& dims, onnx::ElementType type) {
    info.add_string(onnx::value_info::kName, name);
    protozero::pbf_writer kinds(info, onnx::value_info::kType);
    protozero::pbf_writer tensor(kinds, onnx::type::kTensor);
    tensor.add_int32(onnx::type::kElement, static_cast<int>(type));
    protozero::pbf_writer shape(tensor, onnx::type::kShape);
    for (const OnnxDimension& dim : dims) {
      std::string content;
      protozero::pbf_writer dimension(content);
      if (const auto* value = std::get_if<std::int64_t>(&dim))
        dimension.add_int64(onnx::shape::kValue, *value);
      else if (!std::get<std::string>(dim).empty())
        dimension.add_string(onnx::shape::kParameter, std::get<std::string>(dim));
      shape.add_message(onnx::shape::kDimension, content);
    }
  }
  static void write_value(protozero::pbf_writer& attribute, const OnnxAttributeValue& value) {
    if (const auto* integer = std::get_if<std::int64_t>(&value))
      attribute.add_int64(onnx::attribute::kInt, *integer);
    else if (const auto* text = std::get_if<std::string>(&value))
      attribute.add_string(onnx::attribute::kString, *text);
    else
      for (const std::int64_t i : std::get<std::vector<std::int64_t>>(value))
        attribute.add_int64(onnx::attribute::kInts, i);
  }

  std::string graph_;
};

}  // namespace meshwright
