#include "kernels/cuda/activation.hpp"

#include "kernels/cuda/pack.hpp"

namespace meshwright::cuda {
namespace {

/// y[i] = f(x[i]); f is selected once per pack.
template <class F>
__device__ void apply(const Pack& x, Pack& y, F f) {
#pragma unroll
  for (int i = 0; i < kPack; ++i) y.v[i] = f(x.v[i]);
}

/// Of the input, or of the gate.
__device__ void values(ActivationFunction function, const Pack& x, Pack& y) {
  switch (function) {
    case ActivationFunction::kRelu:
    case ActivationFunction::kReglu:
      return apply(x, y, [](float v) { return v > 0 ? v : 0.0F; });
    case ActivationFunction::kSquaredRelu:
      return apply(x, y, [](float v) { return v > 0 ? v * v : 0.0F; });
    case ActivationFunction::kGeluTanh:
    case ActivationFunction::kGegluTanh:
      return apply(x, y, [](float v) { return gelu_tanh(v); });
    case ActivationFunction::kGeluErf:
    case ActivationFunction::kGegluErf:
      return apply(x, y, [](float v) { return gelu_erf(v); });
    case ActivationFunction::kSwiGlu:
      return apply(x, y, [](float v) { return silu(v); });
    case ActivationFunction::kClampedSwiGlu:
      return apply(x, y, [](float v) { return steep_silu(v); });
  }
}

__device__ void slopes(ActivationFunction function, const Pack& x, Pack& y) {
  switch (function) {
    case ActivationFunction::kRelu:
    case ActivationFunction::kReglu:
      return apply(x, y, [](float v) { return v > 0 ? 1.0F : 0.0F; });
    case ActivationFunction::kSquaredRelu:
      return apply(x, y, [](float v) { return v > 0 ? 2.0F * v : 0.0F; });
    case ActivationFunction::kGeluTanh:
    case ActivationFunction::kGegluTanh:
      return apply(x, y, [](float v) { return gelu_tanh_slope(v); });
    case ActivationFunction::kGeluErf:
    case ActivationFunction::kGegluErf:
      return apply(x, y, [](float v) { return gelu_erf_slope(v); });
    case ActivationFunction::kSwiGlu:
      return apply(x, y, [](float v) { return silu_slope(v); });
    case ActivationFunction::kClampedSwiGlu:
      return apply(x, y, [](float v) { return steep_silu_slope(v); });
  }
}

/// Gate and up as the formulas read them: clamped, with one added to up, or unchanged.
struct Clamp {
  bool is_on;
  float limit;
  __device__ float gate(float x) const { return is_on ? fminf(x, limit) : x; }
  __device__ float up(float u) const { return is_on ? fminf(fmaxf(u, -limit), limit) + 1.0F : u; }
  __device__ bool passes_gate(float x) const { return !is_on || x <= limit; }
  __device__ bool passes_up(float u) const { return !is_on || fabsf(u) <= limit; }
};
template <class Arguments>
Clamp clamp_of(const Arguments& a) {
  return {a.function == ActivationFunction::kClampedSwiGlu, a.limit};
}

struct Forward {
  ActivationFunction function;
  Clamp clamp;
  __device__ void operator()(const Pack (&in)[1], Pack (&out)[1], const Place&) const {
    values(function, in[0], out[0]);
  }
  __device__ void operator()(const Pack (&in)[2], Pack (&out)[1], const Place&) const {
    const Clamp& c = clamp;
    Pack gate;
    apply(in[0], gate, [&c](float v) { return c.gate(v); });
    values(function, gate, out[0]);
#pragma unroll
    for (int i = 0; i < kPack; ++i) out[0].v[i] *= clamp.up(in[1].v[i]);
  }
};

struct Backward {
  ActivationFunction function;
  __device__ void operator()(const Pack (&in)[2], Pack (&out)[1], const Place&) const {
    slopes(function, in[0], out[0]);
#pragma unroll
    for (int i = 0; i < kPack; ++i) out[0].v[i] *= in[1].v[i];
  }
};

/// From (gate, up, dy): dgate = dy up f'(gate), dup = dy f(gate).
struct GatedBackward {
  ActivationFunction function;
  Clamp clamp;
  __device__ void operator()(const Pack (&in)[3], Pack (&out)[2], const Place&) const {
    const Clamp& c = clamp;
    Pack gate;
    apply(in[0], gate, [&c](float v) { return c.gate(v); });
    slopes(function, gate, out[0]);
    values(function, gate, out[1]);
#pragma unroll
    for (int i = 0; i < kPack; ++i) {
      const float dy = in[2].v[i];
      out[0].v[i] = clamp.passes_gate(in[0].v[i]) ? out[0].v[i] * dy * clamp.up(in[1].v[i]) : 0.0F;
      out[1].v[i] = clamp.passes_up(in[1].v[i]) ? out[1].v[i] * dy : 0.0F;
    }
  }
};

}  // namespace

void run(const Launch& launch, const ActivationForward& a) {
  const Forward forward{a.function, clamp_of(a)};
  if (is_gated(a.function))
    map<2, 1>(stream_of(launch), {a.x, a.up}, {a.y}, forward);
  else
    map<1, 1>(stream_of(launch), {a.x}, {a.y}, forward);
}

void run(const Launch& launch, const ActivationBackward& a) {
  if (is_gated(a.function))
    map<3, 2>(stream_of(launch), {a.x, a.up, a.dy}, {a.dx, a.dup},
              GatedBackward{a.function, clamp_of(a)});
  else
    map<2, 1>(stream_of(launch), {a.x, a.dy}, {a.dx}, Backward{a.function});
}

}  // namespace meshwright::cuda
