/// ONNX models as graphs of kernels. All input is untrusted: sizes are limited, and errors are
/// InputErrors with file, node and operator.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/kernel_graph.hpp"
#include "models/text/named_text.hpp"

namespace meshwright {

struct OnnxOptions {
  /// Of symbolic dimensions by their names; "x:0" is dimension 0 of the input 'x' without a name.
  std::map<std::string, std::int64_t> dimensions = {};
  Dtype dtype = Dtype::kBf16;  ///< of floating-point tensors
  bool is_training = true;     ///< with backward kernels and saved tensors
  /// Operators without a rule are read and written once, if the file has the shapes of their
  /// outputs. Otherwise they are refused.
  bool allows_unknown_operators = false;
  /// Of files with data of tensors, of which masks are read; empty: none are.
  std::string directory = {};
  /// As torch.compile does it (fuse_kernels.hpp). Otherwise every operator has its own kernels.
  bool fuses_kernels = true;
};

/// Largest ONNX file; protobuf messages have at most 2 GiB.
inline constexpr std::size_t kLargestOnnxFile = std::size_t{2} << 30;

/// True if a file may be an ONNX model, rather than text.
bool looks_like_onnx(std::string_view bytes);

/// The operators that depend on inputs. Left out: nodes that compute constants, shapes and other
/// layouts of parameters. A node without name gets the name of its first output. Weights are not
/// read, and may be missing.
KernelGraph read_onnx(const NamedText& file, const OnnxOptions& options = {});

/// Names of the dimensions of inputs that have no value in the file, in their order, each once.
std::vector<std::string> symbolic_dimensions(const NamedText& file);

}  // namespace meshwright
