#include <cmath>

#include "kernels/reference/element_access.hpp"
#include "kernels/reference/kernels.hpp"

namespace meshwright::reference {
namespace {

/// xhat of one element from the saved statistics of its (row, group).
struct Normalized {
  NormKind kind;
  std::span<const float> mean, inverse_deviation;
  double operator()(double x, std::int64_t statistic) const {
    const double center = kind == NormKind::kLayerNorm ? double{get(mean, statistic)} : 0;
    return (x - center) * double{get(inverse_deviation, statistic)};
  }
};

template <class Arguments>
double weight_of(const Arguments& a, std::int64_t i) {
  return a.weight.empty() ? 1.0 : at(a.weight, i) + double{a.offset};
}

}  // namespace

void run(const Launch&, const NormForward& a) {
  const bool centered = a.kind == NormKind::kLayerNorm;
  const std::int64_t width = a.x.columns / a.groups;
  for (std::int64_t row = 0; row < a.x.rows; ++row)
    for (std::int64_t group = 0; group < a.groups; ++group) {
      const std::int64_t first = group * width, statistic = row * a.groups + group;
      double mean = 0;
      if (centered) {
        for (std::int64_t i = 0; i < width; ++i) mean += at(a.x, row, first + i);
        mean /= static_cast<double>(width);
      }
      double squares = 0;
      for (std::int64_t i = 0; i < width; ++i)
        squares += std::pow(at(a.x, row, first + i) - mean, 2);
      const double r = 1 / std::sqrt(squares / static_cast<double>(width) + double{a.epsilon});
      for (std::int64_t i = 0; i < width && a.y.data != nullptr; ++i) {
        const double xhat = (at(a.x, row, first + i) - mean) * r;
        put(a.y, row, first + i, xhat * weight_of(a, i) + (a.bias.empty() ? 0.0 : at(a.bias, i)));
      }
      if (!a.mean.empty()) get(a.mean, statistic) = static_cast<float>(mean);
      if (!a.inverse_deviation.empty()) get(a.inverse_deviation, statistic) = static_cast<float>(r);
    }
}

void run(const Launch&, const NormBackwardInput& a) {
  const bool centered = a.kind == NormKind::kLayerNorm;
  const Normalized normalized{a.kind, a.mean, a.inverse_deviation};
  const std::int64_t width = a.x.columns / a.groups;
  for (std::int64_t row = 0; row < a.x.rows; ++row)
    for (std::int64_t group = 0; group < a.groups; ++group) {
      const std::int64_t first = group * width, statistic = row * a.groups + group;
      double sum_g = 0, sum_g_xhat = 0;
      for (std::int64_t i = 0; i < width; ++i) {
        const double g = at(a.dy, row, first + i) * weight_of(a, i);
        sum_g += g;
        sum_g_xhat += g * normalized(at(a.x, row, first + i), statistic);
      }
      const double mean_g = centered ? sum_g / static_cast<double>(width) : 0;
      const double mean_g_xhat = sum_g_xhat / static_cast<double>(width);
      for (std::int64_t i = 0; i < width; ++i) {
        const double g = at(a.dy, row, first + i) * weight_of(a, i);
        const double xhat = normalized(at(a.x, row, first + i), statistic);
        const double dx =
            double{get(a.inverse_deviation, statistic)} * (g - mean_g - xhat * mean_g_xhat);
        put(a.dx, row, first + i, dx + (a.accumulate ? at(a.dx, row, first + i) : 0.0));
      }
    }
}

void run(const Launch&, const NormBackwardWeight& a) {
  const Normalized normalized{a.kind, a.mean, a.inverse_deviation};
  const std::int64_t width = a.x.columns / a.groups;
  for (std::int64_t i = 0; i < width; ++i) {
    double dweight = 0, dbias = 0;
    for (std::int64_t row = 0; row < a.x.rows; ++row)
      for (std::int64_t group = 0; group < a.groups; ++group) {
        const double dy = at(a.dy, row, group * width + i);
        dweight += dy * normalized(at(a.x, row, group * width + i), row * a.groups + group);
        dbias += dy;
      }
    get(a.dweight, i) += static_cast<float>(dweight);
    if (!a.dbias.empty()) get(a.dbias, i) += static_cast<float>(dbias);
  }
}

}  // namespace meshwright::reference
