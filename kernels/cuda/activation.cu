#include "kernels/cuda/activation.hpp"

#include "kernels/cuda/pack.hpp"

namespace meshwright::cuda {
namespace {

/// y = f(x), times up if gated; f is selected once per pack.
struct Forward {
  ActivationFunction function;
  template <class F>
  __device__ static void apply(const Pack& x, Pack& y, F f) {
#pragma unroll
    for (int i = 0; i < kPack; ++i) y.v[i] = f(x.v[i]);
  }
  __device__ void values(const Pack& x, Pack& y) const {
    switch (function) {
      case ActivationFunction::kRelu:
        return apply(x, y, [](float v) { return v > 0 ? v : 0.0F; });
      case ActivationFunction::kSquaredRelu:
        return apply(x, y, [](float v) { return v > 0 ? v * v : 0.0F; });
      case ActivationFunction::kGeluTanh:
        return apply(x, y, [](float v) { return gelu_tanh(v); });
      case ActivationFunction::kGeluErf:
        return apply(x, y, [](float v) { return gelu_erf(v); });
      case ActivationFunction::kSwiGlu:
        return apply(x, y, [](float v) { return silu(v); });
    }
  }
  __device__ void operator()(const Pack (&in)[1], Pack (&out)[1], const Place&) const {
    values(in[0], out[0]);
  }
  __device__ void operator()(const Pack (&in)[2], Pack (&out)[1], const Place&) const {
    values(in[0], out[0]);
#pragma unroll
    for (int i = 0; i < kPack; ++i) out[0].v[i] *= in[1].v[i];
  }
};

struct Backward {
  ActivationFunction function;
  __device__ void operator()(const Pack (&in)[2], Pack (&out)[1], const Place&) const {
    const Pack &x = in[0], &dy = in[1];
    switch (function) {
      case ActivationFunction::kRelu:
        Forward::apply(x, out[0], [](float v) { return v > 0 ? 1.0F : 0.0F; });
        break;
      case ActivationFunction::kSquaredRelu:
        Forward::apply(x, out[0], [](float v) { return v > 0 ? 2.0F * v : 0.0F; });
        break;
      case ActivationFunction::kGeluTanh:
        Forward::apply(x, out[0], [](float v) { return gelu_tanh_slope(v); });
        break;
      case ActivationFunction::kGeluErf:
        Forward::apply(x, out[0], [](float v) { return gelu_erf_slope(v); });
        break;
      case ActivationFunction::kSwiGlu:
        break;  // GatedBackward
    }
#pragma unroll
    for (int i = 0; i < kPack; ++i) out[0].v[i] *= dy.v[i];
  }
};

/// From (gate, up, dy): dgate = dy up silu'(gate), dup = dy silu(gate).
struct GatedBackward {
  __device__ void operator()(const Pack (&in)[3], Pack (&out)[2], const Place&) const {
#pragma unroll
    for (int i = 0; i < kPack; ++i) {
      const float x = in[0].v[i], up = in[1].v[i], dy = in[2].v[i];
      const float s = sigmoid(x);
      out[0].v[i] = dy * up * (s * (1.0F + x * (1.0F - s)));
      out[1].v[i] = dy * silu(x);
    }
  }
};

}  // namespace

void run(const Launch& launch, const ActivationForward& a) {
  const Forward forward{a.function};
  if (a.function == ActivationFunction::kSwiGlu)
    map<2, 1>(stream_of(launch), {a.x, a.up}, {a.y}, forward);
  else
    map<1, 1>(stream_of(launch), {a.x}, {a.y}, forward);
}

void run(const Launch& launch, const ActivationBackward& a) {
  if (a.function == ActivationFunction::kSwiGlu)
    map<3, 2>(stream_of(launch), {a.x, a.up, a.dy}, {a.dx, a.dup}, GatedBackward{});
  else
    map<2, 1>(stream_of(launch), {a.x, a.dy}, {a.dx}, Backward{a.function});
}

}  // namespace meshwright::cuda
