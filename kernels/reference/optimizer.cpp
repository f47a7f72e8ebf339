#include <algorithm>
#include <cmath>

#include "kernels/reference/element_access.hpp"
#include "kernels/reference/kernels.hpp"

namespace meshwright::reference {
namespace {
double scale_at(const float* gradient_scale) {
  return gradient_scale == nullptr ? 1.0 : double{*gradient_scale};
}
}  // namespace

void run(const Launch&, const AdamW& a) {
  const double scale = scale_at(a.gradient_scale);
  const double beta1 = double{a.beta1}, beta2 = double{a.beta2};
  const double correction1 = 1 - std::pow(beta1, static_cast<double>(a.step));
  const double correction2 = 1 - std::pow(beta2, static_cast<double>(a.step));
  for (std::int64_t i = 0; i < std::ssize(a.master); ++i) {
    const double g = scale * at(a.gradient, i);
    const double m = beta1 * double{get(a.first_moment, i)} + (1 - beta1) * g;
    const double v = beta2 * double{get(a.second_moment, i)} + (1 - beta2) * g * g;
    const double w = double{get(a.master, i)};
    const double direction = (m / correction1) / (std::sqrt(v / correction2) + double{a.epsilon});
    const double updated = w - double{a.learning_rate} * (double{a.weight_decay} * w + direction);
    get(a.first_moment, i) = static_cast<float>(m);
    get(a.second_moment, i) = static_cast<float>(v);
    get(a.master, i) = static_cast<float>(updated);
    if (!a.parameter.empty()) put(a.parameter, i, double{get(a.master, i)});
  }
}

void run(const Launch&, const Sgd& a) {
  const double scale = scale_at(a.gradient_scale);
  for (std::int64_t i = 0; i < std::ssize(a.master); ++i) {
    const double w = double{get(a.master, i)};
    double v = scale * at(a.gradient, i) + double{a.weight_decay} * w;
    if (!a.velocity.empty()) {
      v += double{a.momentum} * double{get(a.velocity, i)};
      get(a.velocity, i) = static_cast<float>(v);
    }
    get(a.master, i) = static_cast<float>(w - double{a.learning_rate} * v);
    if (!a.parameter.empty()) put(a.parameter, i, double{get(a.master, i)});
  }
}

void run(const Launch&, const SquaredNorm& a) {
  double sum = 0;
  for (std::int64_t i = 0; i < a.x.size; ++i) sum += at(a.x, i) * at(a.x, i);
  *a.sum = static_cast<float>(double{*a.sum} + sum);
}

void run(const Launch&, const ClipScale& a) {
  constexpr double kAgainstZero = 1e-6;  // PyTorch, torch.nn.utils.clip_grad_norm_
  const double norm = std::sqrt(double{*a.sum});
  *a.scale = static_cast<float>(std::min(1.0, double{a.limit} / (norm + kAgainstZero)));
}

}  // namespace meshwright::reference
