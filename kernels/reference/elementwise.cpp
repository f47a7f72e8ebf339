#include <algorithm>
#include <cmath>

#include "kernels/reference/activation_formulas.hpp"
#include "kernels/reference/element_access.hpp"
#include "kernels/reference/kernels.hpp"

namespace meshwright::reference {

void run(const Launch&, const Add& a) {
  for (std::int64_t r = 0; r < a.y.rows; ++r)
    for (std::int64_t i = 0; i < a.y.columns; ++i) put(a.y, r, i, at(a.a, r, i) + at(a.b, r, i));
}

void run(const Launch&, const BiasAdd& a) {
  for (std::int64_t r = 0; r < a.y.rows; ++r)
    for (std::int64_t i = 0; i < a.y.columns; ++i) put(a.y, r, i, at(a.x, r, i) + at(a.bias, i));
}

namespace {
double column_sum(const ConstMatrix& m, std::int64_t column, std::int64_t first,
                  std::int64_t last) {
  double sum = 0;
  for (std::int64_t r = first; r < last; ++r) sum += at(m, r, column);
  return sum;
}
}  // namespace

void run(const Launch&, const BiasGradient& a) {
  for (std::int64_t i = 0; i < a.dy.columns; ++i)
    get(a.dbias, i) += static_cast<float>(column_sum(a.dy, i, 0, a.dy.rows));
}

void run(const Launch&, const GroupedBiasGradient& a) {
  for (std::int64_t e = 0; e < a.dbias.rows; ++e)
    for (std::int64_t i = 0; i < a.dy.columns; ++i)
      add_to(a.dbias, e, i, column_sum(a.dy, i, get(a.offsets, e), get(a.offsets, e + 1)));
}

void run(const Launch&, const RowGateForward& a) {
  for (std::int64_t r = 0; r < a.x.rows; ++r)
    for (std::int64_t i = 0; i < a.x.columns; ++i)
      put(a.y, r, i, sigmoid(at(a.gate, r, 0)) * at(a.x, r, i));
}

void run(const Launch&, const RowGateBackward& a) {
  for (std::int64_t r = 0; r < a.x.rows; ++r) {
    const double s = sigmoid(at(a.gate, r, 0));
    double product = 0;
    for (std::int64_t i = 0; i < a.x.columns; ++i) {
      product += at(a.dy, r, i) * at(a.x, r, i);
      put(a.dx, r, i, s * at(a.dy, r, i));
    }
    put(a.dgate, r, 0, product * s * (1 - s));
  }
}

void run(const Launch&, const Reduce& a) {
  for (std::int64_t i = 0; i < a.into.size; ++i) {
    const double x = at(a.into, i), y = at(a.from, i);
    put(a.into, i, a.reduction == Reduction::kSum ? x + y : std::max(x, y));
  }
}

void run(const Launch&, const SoftcapForward& a) {
  const double cap = double{a.cap};
  for (std::int64_t i = 0; i < a.y.size; ++i) put(a.y, i, cap * std::tanh(at(a.x, i) / cap));
}

void run(const Launch&, const SoftcapBackward& a) {
  for (std::int64_t i = 0; i < a.dx.size; ++i) {
    const double capped = at(a.y, i) / double{a.cap};
    put(a.dx, i, at(a.dy, i) * (1 - capped * capped));
  }
}

void run(const Launch&, const Cast& a) {
  for (std::int64_t i = 0; i < a.y.size; ++i) put(a.y, i, at(a.x, i) * double{a.scale});
}

void run(const Launch&, const Fill& a) {
  for (std::int64_t i = 0; i < a.y.size; ++i) put(a.y, i, double{a.value});
}

void run(const Launch&, const Total& a) {
  double sum = 0;
  for (const float x : a.x) sum += double{x};
  *a.total = static_cast<float>(sum * double{a.scale});
}

void run(const Launch&, const MeanSquaredErrorForward& a) {
  for (std::int64_t r = 0; r < a.x.rows; ++r) {
    double sum = 0;
    for (std::int64_t i = 0; i < a.x.columns; ++i) {
      const double difference = at(a.x, r, i) - at(a.target, r, i);
      sum += difference * difference;
    }
    get(a.loss, r) = static_cast<float>(sum / static_cast<double>(a.x.columns));
  }
}

void run(const Launch&, const MeanSquaredErrorGradient& a) {
  const double factor = 2 * double{a.scale} / static_cast<double>(a.x.columns);
  for (std::int64_t r = 0; r < a.x.rows; ++r)
    for (std::int64_t i = 0; i < a.x.columns; ++i)
      put(a.dx, r, i, factor * (at(a.x, r, i) - at(a.target, r, i)));
}

}  // namespace meshwright::reference
