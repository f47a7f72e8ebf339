#include "kernels/cpu/kernels.hpp"

namespace meshwright::cpu::MESHWRIGHT_CPU_LEVEL {
namespace {

float scale_at(const float* gradient_scale) {
  return gradient_scale == nullptr ? 1.0F : *gradient_scale;
}

void copy_out(const Vector& parameter, std::int64_t first, std::int64_t count, const float* w) {
  if (parameter.size == 0) return;
  if (parameter.dtype == Dtype::kFp32) {
    float* to = static_cast<float*>(parameter.data) + first;
    for (std::int64_t i = 0; i < count; ++i) to[i] = w[i];
  }
  store(parameter, first, count, w);
}

}  // namespace

void run(const Launch&, const AdamW& a) {
  const float scale = scale_at(a.gradient_scale);
  const double step = static_cast<double>(a.step);
  const auto inverse_correction = [&](float beta) {
    return static_cast<float>(1 / (1 - __builtin_pow(static_cast<double>(beta), step)));
  };
  const float correct1 = inverse_correction(a.beta1), correct2 = inverse_correction(a.beta2);
  // Copies, since the compiler must assume that a store through a float* changes the arguments.
  const float beta1 = a.beta1, beta2 = a.beta2, fresh1 = 1 - beta1, fresh2 = 1 - beta2;
  const float rate = a.learning_rate, decay = a.weight_decay, epsilon = a.epsilon;
  Chunk buffer;
  for_each_chunk(
      static_cast<std::int64_t>(a.master.size()), [&](std::int64_t first, std::int64_t count) {
        const float* gradient = load(a.gradient, first, count, buffer);
        float* w = a.master.data() + first;
        float* m = a.first_moment.data() + first;
        float* v = a.second_moment.data() + first;
        MESHWRIGHT_INDEPENDENT
        for (std::int64_t i = 0; i < count; ++i) {
          const float g = scale * gradient[i];
          m[i] = beta1 * m[i] + fresh1 * g;
          v[i] = beta2 * v[i] + fresh2 * (g * g);
          const float direction = m[i] * correct1 / (__builtin_sqrtf(v[i] * correct2) + epsilon);
          w[i] -= rate * (decay * w[i] + direction);
        }
        copy_out(a.parameter, first, count, w);
      });
}

void run(const Launch&, const Sgd& a) {
  const float scale = scale_at(a.gradient_scale);
  const float rate = a.learning_rate, decay = a.weight_decay, momentum = a.momentum;
  Chunk buffer;
  for_each_chunk(static_cast<std::int64_t>(a.master.size()),
                 [&](std::int64_t first, std::int64_t count) {
                   const float* g = load(a.gradient, first, count, buffer);
                   float* w = a.master.data() + first;
                   if (a.velocity.data() == nullptr || a.velocity.empty()) {
                     MESHWRIGHT_INDEPENDENT
                     for (std::int64_t i = 0; i < count; ++i)
                       w[i] -= rate * (scale * g[i] + decay * w[i]);
                   } else {
                     float* v = a.velocity.data() + first;
                     MESHWRIGHT_INDEPENDENT
                     for (std::int64_t i = 0; i < count; ++i) {
                       v[i] = momentum * v[i] + (scale * g[i] + decay * w[i]);
                       w[i] -= rate * v[i];
                     }
                   }
                   copy_out(a.parameter, first, count, w);
                 });
}

void run(const Launch&, const SquaredNorm& a) {
  Chunk buffer;
  double sum = 0;
  for_each_chunk(a.x.size, [&](std::int64_t first, std::int64_t count) {
    const float* x = load(a.x, first, count, buffer);
    Lanes lanes;
    lanes.add(count, [&](std::int64_t i) { return x[i] * x[i]; });
    sum += static_cast<double>(lanes.total());
  });
  *a.sum = static_cast<float>(static_cast<double>(*a.sum) + sum);
}

}  // namespace meshwright::cpu::MESHWRIGHT_CPU_LEVEL
