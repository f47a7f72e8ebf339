/// Field numbers of the protobuf messages of ONNX (github.com/onnx/onnx, onnx/onnx.proto), as far
/// as they are read.
#pragma once

#include <cstdint>

namespace meshwright::onnx {

namespace model {
inline constexpr std::uint32_t kIrVersion = 1, kGraph = 7, kOpsetImport = 8, kFunctions = 25;
}
namespace opset {
inline constexpr std::uint32_t kDomain = 1, kVersion = 2;
}
namespace function {
inline constexpr std::uint32_t kName = 1, kDomain = 10;
}
namespace graph {
inline constexpr std::uint32_t kNode = 1, kInitializer = 5, kInput = 11, kOutput = 12,
                               kValueInfo = 13, kSparseInitializer = 15;
}
namespace node {
inline constexpr std::uint32_t kInput = 1, kOutput = 2, kName = 3, kOpType = 4, kAttribute = 5,
                               kDomain = 7;
}
namespace attribute {
inline constexpr std::uint32_t kName = 1, kFloat = 2, kInt = 3, kString = 4, kTensor = 5,
                               kGraph = 6, kFloats = 7, kInts = 8, kStrings = 9, kGraphs = 11;
}
namespace tensor {
inline constexpr std::uint32_t kDims = 1, kDataType = 2, kFloatData = 4, kInt32Data = 5,
                               kInt64Data = 7, kName = 8, kRawData = 9, kDoubleData = 10,
                               kExternalData = 13;
}
namespace entry {  ///< a key with its value
inline constexpr std::uint32_t kKey = 1, kValue = 2;
}
namespace value_info {
inline constexpr std::uint32_t kName = 1, kType = 2;
}
namespace type {
inline constexpr std::uint32_t kTensor = 1, kElement = 1, kShape = 2;
}
namespace shape {
inline constexpr std::uint32_t kDimension = 1, kValue = 1, kParameter = 2;
}

}  // namespace meshwright::onnx
