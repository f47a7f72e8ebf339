#include <fmt/format.h>

#include <cstring>
#include <protozero/pbf_reader.hpp>

#include "core/base/error.hpp"
#include "core/base/number_from_text.hpp"
#include "models/onnx/causal_masks.hpp"
#include "models/onnx/onnx_fields.hpp"
#include "models/onnx/onnx_graph.hpp"

namespace meshwright::onnx {
namespace {

using protozero::pbf_reader;
using protozero::pbf_wire_type;

constexpr std::uint32_t field(std::uint32_t number, pbf_wire_type type) {
  return protozero::tag_and_type(number, type);
}
constexpr std::uint32_t varint(std::uint32_t n) { return field(n, pbf_wire_type::varint); }
constexpr std::uint32_t fixed32(std::uint32_t n) { return field(n, pbf_wire_type::fixed32); }
constexpr std::uint32_t sized(std::uint32_t n) { return field(n, pbf_wire_type::length_delimited); }

/// What is wrong with the file; the byte offset is added by the caller.
struct Refusal {
  std::string what, hint;
};

std::string text_of(pbf_reader& reader) { return reader.get_string(); }
std::string_view view_of(pbf_reader& reader) {
  const protozero::data_view view = reader.get_view();
  return {view.data(), view.size()};
}

/// Repeated numbers, packed or not, which are appended unless there are too many.
void append_integers(pbf_reader& reader, std::vector<std::int64_t>& list) {
  for (const std::int64_t value : reader.get_packed_int64()) list.push_back(value);
}
void append_floats(pbf_reader& reader, std::vector<float>& list) {
  for (const float value : reader.get_packed_float()) list.push_back(value);
}

// ---- tensors --------------------------------------------------------------------------------

template <class T>
void append_raw(std::string_view bytes, std::vector<double>& values) {
  for (std::size_t at = 0; at + sizeof(T) <= bytes.size(); at += sizeof(T)) {
    T value;
    std::memcpy(&value, bytes.data() + at, sizeof(T));
    values.push_back(static_cast<double>(value));
  }
}

/// Elements of raw_data, which is little-endian, as this program's platforms are.
std::vector<double> values_of_raw(std::string_view bytes, ElementType type) {
  std::vector<double> values;
  switch (type) {
    case ElementType::kFloat:
      append_raw<float>(bytes, values);
      break;
    case ElementType::kDouble:
      append_raw<double>(bytes, values);
      break;
    case ElementType::kInt32:
      append_raw<std::int32_t>(bytes, values);
      break;
    case ElementType::kInt64:
      append_raw<std::int64_t>(bytes, values);
      break;
    case ElementType::kBool:
    case ElementType::kUint8:
      append_raw<std::uint8_t>(bytes, values);
      break;
    case ElementType::kInt8:
      append_raw<std::int8_t>(bytes, values);
      break;
    default:
      break;
  }
  return values;
}

template <class List>
void append_few(const List& list, std::vector<double>& values) {
  for (const auto value : list) {
    if (values.size() > static_cast<std::size_t>(kMostKnownValues)) return;
    values.push_back(static_cast<double>(value));
  }
}

/// Adds one key of the place of external data, with its value.
void read_external_entry(pbf_reader reader, std::optional<ExternalData>& data) {
  std::string key, value;
  while (reader.next()) switch (reader.tag_and_type()) {
      case sized(entry::kKey):
        key = text_of(reader);
        break;
      case sized(entry::kValue):
        value = text_of(reader);
        break;
      default:
        reader.skip();
    }
  if (!data) data.emplace();
  if (key == "location") data->location = value;
  if (key == "offset") data->offset = number_from_text<std::uint64_t>(value).value_or(0);
}

TensorLiteral read_tensor(pbf_reader reader) {
  TensorLiteral tensor;
  std::string_view raw;
  std::vector<double> values;
  while (reader.next()) switch (reader.tag_and_type()) {
      case varint(tensor::kDims):
        tensor.dims.push_back(reader.get_int64());
        break;
      case sized(tensor::kDims):
        append_integers(reader, tensor.dims);
        break;
      case varint(tensor::kDataType):
        tensor.type = static_cast<ElementType>(reader.get_int32());
        break;
      case sized(tensor::kName):
        tensor.name = text_of(reader);
        break;
      case sized(tensor::kRawData):
        raw = view_of(reader);
        break;
      case sized(tensor::kExternalData):
        read_external_entry(reader.get_message(), tensor.external);
        break;
      case sized(tensor::kFloatData):
        append_few(reader.get_packed_float(), values);
        break;
      case sized(tensor::kDoubleData):
        append_few(reader.get_packed_double(), values);
        break;
      case sized(tensor::kInt32Data):
        append_few(reader.get_packed_int32(), values);
        break;
      case sized(tensor::kInt64Data):
        append_few(reader.get_packed_int64(), values);
        break;
      case varint(tensor::kInt64Data):
        values.push_back(static_cast<double>(reader.get_int64()));
        break;
      default:
        reader.skip();
    }
  if (tensor.dims.size() > kMostDimensions)
    throw Refusal{fmt::format("tensor '{}' has {} dimensions", tensor.name, tensor.dims.size()),
                  fmt::format("use at most {} dimensions", kMostDimensions)};
  const std::optional<std::int64_t> count = element_count(tensor.dims);
  if (!count)
    throw Refusal{
        fmt::format("tensor '{}' has the shape [{}]", tensor.name, fmt::join(tensor.dims, ", ")),
        "use dimensions of at least 0, and at most 2^40 elements"};
  if (!raw.empty() && may_be_mask(tensor.type, tensor.dims))
    tensor.is_causal_mask = is_causal_mask(raw, tensor.type, tensor.dims);
  if (*count > kMostKnownValues) return tensor;
  if (!raw.empty()) values = values_of_raw(raw, tensor.type);
  if (values.size() == static_cast<std::size_t>(*count)) tensor.value = std::move(values);
  return tensor;
}

// ---- declared shapes ------------------------------------------------------------------------

DeclaredDimension read_dimension(pbf_reader reader) {
  DeclaredDimension dimension;
  while (reader.next()) switch (reader.tag_and_type()) {
      case varint(shape::kValue):
        dimension.value = reader.get_int64();
        break;
      case sized(shape::kParameter):
        dimension.name = text_of(reader);
        break;
      default:
        reader.skip();
    }
  if (dimension.value && *dimension.value < 0) dimension.value.reset();
  return dimension;
}

void read_tensor_type(pbf_reader reader, DeclaredTensor& declared) {
  while (reader.next()) switch (reader.tag_and_type()) {
      case varint(type::kElement):
        declared.type = static_cast<ElementType>(reader.get_int32());
        break;
      case sized(type::kShape): {
        pbf_reader dims = reader.get_message();
        declared.dims.emplace();
        while (dims.next(shape::kDimension, pbf_wire_type::length_delimited)) {
          declared.dims->push_back(read_dimension(dims.get_message()));
          if (declared.dims->size() > kMostDimensions)
            throw Refusal{fmt::format("more than {} dimensions", kMostDimensions),
                          "use tensors with fewer dimensions"};
        }
        break;
      }
      default:
        reader.skip();
    }
}

DeclaredTensor read_value_info(pbf_reader reader) {
  DeclaredTensor declared;
  while (reader.next()) switch (reader.tag_and_type()) {
      case sized(value_info::kName):
        declared.name = text_of(reader);
        break;
      case sized(value_info::kType): {
        pbf_reader kinds = reader.get_message();
        while (kinds.next(type::kTensor, pbf_wire_type::length_delimited))
          read_tensor_type(kinds.get_message(), declared);
        break;
      }
      default:
        reader.skip();
    }
  return declared;
}

// ---- nodes ----------------------------------------------------------------------------------

Attribute read_attribute(pbf_reader reader) {
  Attribute attribute;
  while (reader.next()) switch (reader.tag_and_type()) {
      case sized(attribute::kName):
        attribute.name = text_of(reader);
        break;
      case fixed32(attribute::kFloat):
        attribute.real = reader.get_float();
        break;
      case varint(attribute::kInt):
        attribute.integer = reader.get_int64();
        break;
      case sized(attribute::kString):
        attribute.text = text_of(reader);
        break;
      case sized(attribute::kTensor):
        attribute.tensor = read_tensor(reader.get_message());
        break;
      case fixed32(attribute::kFloats):
        attribute.reals.push_back(reader.get_float());
        break;
      case sized(attribute::kFloats):
        append_floats(reader, attribute.reals);
        break;
      case varint(attribute::kInts):
        attribute.integers.push_back(reader.get_int64());
        break;
      case sized(attribute::kInts):
        append_integers(reader, attribute.integers);
        break;
      case sized(attribute::kStrings):
        attribute.texts.push_back(text_of(reader));
        break;
      case sized(attribute::kGraph):
      case sized(attribute::kGraphs):
        attribute.has_graph = true;
        reader.skip();
        break;
      default:
        reader.skip();
    }
  return attribute;
}

Node read_node(pbf_reader reader) {
  Node node;
  while (reader.next()) switch (reader.tag_and_type()) {
      case sized(node::kInput):
        node.inputs.push_back(text_of(reader));
        break;
      case sized(node::kOutput):
        node.outputs.push_back(text_of(reader));
        break;
      case sized(node::kName):
        node.name = text_of(reader);
        break;
      case sized(node::kOpType):
        node.operation = text_of(reader);
        break;
      case sized(node::kDomain):
        node.domain = text_of(reader);
        break;
      case sized(node::kAttribute):
        node.attributes.push_back(read_attribute(reader.get_message()));
        break;
      default:
        reader.skip();
    }
  return node;
}

// ---- graph and model ------------------------------------------------------------------------

class ModelReader {
 public:
  ModelReader(std::string_view bytes, const std::string& where) : bytes_(bytes), where_(where) {}

  Graph read() {
    pbf_reader model(bytes_.data(), bytes_.size());
    bool has_graph = false;
    try {
      while (model.next()) switch (model.tag_and_type()) {
          case sized(model::kGraph):
            read_graph(model.get_message());
            has_graph = true;
            break;
          case sized(model::kOpsetImport):
            read_opset(model.get_message());
            break;
          case sized(model::kFunctions):
            read_function(model.get_message());
            break;
          default:
            model.skip();
        }
    } catch (const protozero::exception& error) {
      fail({fmt::format("invalid protobuf message: {}", error.what()),
            "give an ONNX model, as torch.onnx.export writes it"});
    } catch (const Refusal& refusal) {
      fail(refusal);
    }
    if (!has_graph) throw InputError({where_, "the file has no ONNX graph", "give an ONNX model"});
    return std::move(graph_);
  }

 private:
  [[noreturn]] void fail(const Refusal& refusal) const {
    throw InputError({fmt::format("{}: byte {}", where_, offset_), refusal.what, refusal.hint});
  }

  void read_graph(pbf_reader reader) {
    while (reader.next()) {
      offset_ = static_cast<std::size_t>(reader.data().data() - bytes_.data());
      switch (reader.tag_and_type()) {
        case sized(graph::kNode):
          add_node(read_node(reader.get_message()));
          break;
        case sized(graph::kInitializer):
          graph_.initializers.push_back(read_tensor(reader.get_message()));
          break;
        case sized(graph::kSparseInitializer):
          throw Refusal{"sparse initializers are not supported", "export dense weights"};
        case sized(graph::kInput):
          graph_.inputs.push_back(read_value_info(reader.get_message()));
          break;
        case sized(graph::kOutput):
          graph_.outputs.push_back(read_value_info(reader.get_message()));
          break;
        case sized(graph::kValueInfo):
          graph_.intermediates.push_back(read_value_info(reader.get_message()));
          break;
        default:
          reader.skip();
      }
    }
  }

  void add_node(Node node) {
    connections_ += node.inputs.size() + node.outputs.size();
    if (graph_.nodes.size() == kMostNodes || connections_ > kMostConnections)
      throw Refusal{fmt::format("more than {} nodes, or {} inputs and outputs of nodes", kMostNodes,
                                kMostConnections),
                    "split the model, or merge nodes"};
    graph_.nodes.push_back(std::move(node));
  }

  void read_opset(pbf_reader reader) {
    std::string domain;
    std::int64_t version = 0;
    while (reader.next()) switch (reader.tag_and_type()) {
        case sized(opset::kDomain):
          domain = text_of(reader);
          break;
        case varint(opset::kVersion):
          version = reader.get_int64();
          break;
        default:
          reader.skip();
      }
    graph_.opsets[domain == "ai.onnx" ? "" : domain] = version;
  }

  void read_function(pbf_reader reader) {
    while (reader.next())
      if (reader.tag_and_type() == sized(function::kName))
        graph_.functions.push_back(text_of(reader));
      else
        reader.skip();
  }

  std::string_view bytes_;
  const std::string& where_;
  Graph graph_;
  std::size_t offset_ = 0, connections_ = 0;
};

}  // namespace

Graph parse_onnx(std::string_view bytes, const std::string& where) {
  return ModelReader(bytes, where).read();
}

bool looks_like_onnx(std::string_view bytes) {
  if (bytes.empty()) return false;
  // The first byte is the tag of a field; of ModelProto, only lengths of strings (0x0a and more)
  // could begin a text.
  const auto first = static_cast<std::uint8_t>(bytes.front());
  return first == varint(model::kIrVersion) || first == sized(model::kGraph) ||
         first == sized(model::kOpsetImport);
}

}  // namespace meshwright::onnx
