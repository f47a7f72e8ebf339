/// Names, bounds and members of the parameters of the kernel models (core/cluster/device.hpp), in
/// one place for checking, reading, writing and fitting. Each visit_… calls
///   visit(key, member, bounds)
/// for every parameter of a group; the member is a double, an optional<double>, Seconds or Bytes.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "core/cluster/device.hpp"

namespace meshwright {

/// Valid values in base units; `positive` excludes zero.
struct ParameterBounds {
  double least = 0, most = 1;
  bool positive = false;
  bool contains(double value) const {
    return value >= least && value <= most && (!positive || value > 0);
  }
};
inline constexpr ParameterBounds kShareBounds{0, 1, true};
inline constexpr ParameterBounds kKernelGapBounds{0.0, 1.0};  ///< seconds

/// Visitor that reports values out of bounds.
struct BoundsCheck {
  std::function<void(std::string_view key, std::string what, std::string hint)> report;
  void operator()(std::string_view key, double value, ParameterBounds bounds) const;
  void operator()(std::string_view key, Seconds value, ParameterBounds bounds) const {
    (*this)(key, value.value, bounds);
  }
  void operator()(std::string_view key, Bytes value, ParameterBounds bounds) const {
    (*this)(key, static_cast<double>(value.value), bounds);
  }
  template <class Value>
  void operator()(std::string_view key, std::optional<Value> value, ParameterBounds bounds) const {
    if (value) (*this)(key, *value, bounds);
  }
};

/// GemmEfficiency without the tile size, which is not continuous.
template <class Gemm, class Visit>
void visit_parameters_of_gemm(Gemm& gemm, Visit&& visit) {
  visit("max_efficiency", gemm.max_efficiency, kShareBounds);
  visit("long_efficiency", gemm.long_efficiency, kShareBounds);
  visit("droop_time", gemm.droop_time, ParameterBounds{0, 10, true});
  visit("sustained_efficiency", gemm.sustained_efficiency, kShareBounds);
  visit("tile_edge", gemm.tile_edge, ParameterBounds{0, 1000});
  visit("depth_overhead", gemm.depth_overhead, ParameterBounds{0, 10000});
  visit("exposed_write", gemm.exposed_write, ParameterBounds{0, 2});
  visit("memory_share", gemm.memory_share, kShareBounds);
  visit("ramp", gemm.ramp, kKernelGapBounds);
  visit("grouped_share", gemm.grouped_share, ParameterBounds{0, 1.5, true});
  constexpr ParameterBounds kOfBf16{0, 1.5, true};
  for (std::size_t i = 0; i < gemm.format_share.size(); ++i) {
    const auto format = static_cast<ProductFormat>(i);
    if (format == ProductFormat::kBf16) continue;
    visit(std::string(name_of(format)) + "_share", gemm.format_share[i], kOfBf16);
    if (format >= ProductFormat::kFp8)
      visit(std::string(name_of(format)) + "_long_share", gemm.format_long_share[i], kOfBf16);
  }
}

template <class Stream, class Visit>
void visit_parameters_of_stream(Stream& stream, Visit&& visit) {
  visit("max_efficiency", stream.max_efficiency, kShareBounds);
  visit("half_speed_bytes", stream.half_speed_bytes, ParameterBounds{0, 1e12});
}

/// Parameters that both passes share.
template <class Attention, class Visit>
void visit_shared_parameters_of_attention(Attention& attention, Visit&& visit) {
  visit("ramp", attention.ramp, kKernelGapBounds);
  visit("sustained_share", attention.sustained_share, ParameterBounds{0, 1.5, true});
}
/// `prefix`: "forward" or "backward".
template <class Pass, class Visit>
void visit_parameters_of_pass(const std::string& prefix, Pass& pass, Visit&& visit) {
  constexpr ParameterBounds kKeys{0, 1e6};
  visit(prefix, pass.head_128, kShareBounds);
  visit(prefix + "_head_64", pass.head_64, kShareBounds);
  visit(prefix + "_head_256", pass.head_256, kShareBounds);
  visit(prefix + "_half_length_causal", pass.half_length_causal, kKeys);
  visit(prefix + "_half_length_full", pass.half_length_full, kKeys);
  visit(prefix + "_fp8_share", pass.fp8_share, ParameterBounds{0, 1.5, true});
  visit(prefix + "_dropout_share", pass.dropout_share, kShareBounds);
}
template <class Attention, class Visit>
void visit_parameters_of_attention(Attention& attention, Visit&& visit) {
  visit_parameters_of_pass("forward", attention.forward, visit);
  visit_parameters_of_pass("backward", attention.backward, visit);
  visit_shared_parameters_of_attention(attention, visit);
}

}  // namespace meshwright
