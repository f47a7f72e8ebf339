#include "kernels/cpu/kernels.hpp"

namespace meshwright::cpu::MESHWRIGHT_CPU_LEVEL {
namespace {

float root(float x) { return __builtin_sqrtf(x); }

/// One (row, group): position of its elements and index of its statistics.
struct Part {
  std::int64_t row, first, width, statistic;
};
template <class Body>
void for_each_part(const ConstMatrix& x, std::int64_t groups, const Body& body) {
  const std::int64_t width = x.columns / groups;
  for (std::int64_t row = 0; row < x.rows; ++row)
    for (std::int64_t g = 0; g < groups; ++g) body(Part{row, g * width, width, row * groups + g});
}

/// Sum over the part of (x - center)^power, power 1 or 2.
template <int Power>
float sum_of(const ConstMatrix& x, const Part& part, float center) {
  Chunk buffer;
  Lanes lanes;
  for_each_chunk(part.width, [&](std::int64_t first, std::int64_t count) {
    const float* v = load(x, part.row, part.first + first, count, buffer);
    lanes.add(count, [&](std::int64_t i) {
      const float d = v[i] - center;
      return Power == 1 ? d : d * d;
    });
  });
  return lanes.total();
}

/// Factors of normalized elements.
template <class Arguments>
const float* weights_of(const Arguments& a, std::int64_t first, std::int64_t count, Chunk& buffer) {
  if (a.weight.size > 0 && a.offset == 0) return load(a.weight, first, count, buffer);
  if (a.weight.size == 0) {
    for (std::int64_t i = 0; i < count; ++i) buffer.values[i] = 1;
    return buffer.values;
  }
  const float* stored = load(a.weight, first, count, buffer);
  for (std::int64_t i = 0; i < count; ++i) buffer.values[i] = stored[i] + a.offset;
  return buffer.values;
}

}  // namespace

void run(const Launch&, const NormForward& a) {
  const bool centered = a.kind == NormKind::kLayerNorm;
  Chunk x_buffer, w_buffer, b_buffer, y_buffer;
  for_each_part(a.x, a.groups, [&](const Part& part) {
    const float width = static_cast<float>(part.width);
    const float mean = centered ? sum_of<1>(a.x, part, 0) / width : 0.0F;
    const float r = 1.0F / root(sum_of<2>(a.x, part, mean) / width + a.epsilon);
    const std::int64_t written = a.y.data == nullptr ? 0 : part.width;
    for_each_chunk(written, [&](std::int64_t first, std::int64_t count) {
      const float* x = load(a.x, part.row, part.first + first, count, x_buffer);
      const float* w = weights_of(a, first, count, w_buffer);
      float* y = target(a.y, part.row, part.first + first, y_buffer);
      if (a.bias.size == 0) {
        MESHWRIGHT_INDEPENDENT
        for (std::int64_t i = 0; i < count; ++i) y[i] = (x[i] - mean) * r * w[i];
      } else {
        const float* b = load(a.bias, first, count, b_buffer);
        MESHWRIGHT_INDEPENDENT
        for (std::int64_t i = 0; i < count; ++i) y[i] = (x[i] - mean) * r * w[i] + b[i];
      }
      store(a.y, part.row, part.first + first, count, y);
    });
    if (a.mean.data() != nullptr) a.mean.data()[part.statistic] = mean;
    if (a.inverse_deviation.data() != nullptr) a.inverse_deviation.data()[part.statistic] = r;
  });
}

void run(const Launch&, const NormBackwardInput& a) {
  const bool centered = a.kind == NormKind::kLayerNorm;
  Chunk x_buffer, w_buffer, dy_buffer, dx_buffer, before_buffer;
  for_each_part(a.x, a.groups, [&](const Part& part) {
    const float mean = centered ? a.mean.data()[part.statistic] : 0.0F;
    const float r = a.inverse_deviation.data()[part.statistic];
    Lanes sum_g, sum_g_xhat;
    for_each_chunk(part.width, [&](std::int64_t first, std::int64_t count) {
      const float* x = load(a.x, part.row, part.first + first, count, x_buffer);
      const float* dy = load(a.dy, part.row, part.first + first, count, dy_buffer);
      const float* w = weights_of(a, first, count, w_buffer);
      sum_g.add(count, [&](std::int64_t i) { return dy[i] * w[i]; });
      sum_g_xhat.add(count, [&](std::int64_t i) { return dy[i] * w[i] * ((x[i] - mean) * r); });
    });
    const float width = static_cast<float>(part.width);
    const float mean_g = centered ? sum_g.total() / width : 0.0F;
    const float mean_g_xhat = sum_g_xhat.total() / width;
    for_each_chunk(part.width, [&](std::int64_t first, std::int64_t count) {
      const float* x = load(a.x, part.row, part.first + first, count, x_buffer);
      const float* dy = load(a.dy, part.row, part.first + first, count, dy_buffer);
      const float* w = weights_of(a, first, count, w_buffer);
      float* dx = target(a.dx, part.row, part.first + first, dx_buffer);
      const float keep = a.accumulate ? 1.0F : 0.0F;
      const float* before =
          a.accumulate ? load(a.dx, part.row, part.first + first, count, before_buffer) : dy;
      MESHWRIGHT_INDEPENDENT
      for (std::int64_t i = 0; i < count; ++i) {
        const float value = r * (dy[i] * w[i] - mean_g - (x[i] - mean) * r * mean_g_xhat);
        dx[i] = keep != 0 ? before[i] + value : value;
      }
      store(a.dx, part.row, part.first + first, count, dx);
    });
  });
}

namespace {

/// Columns [first, first + count) of one group, over all rows.
void add_weight_gradient(const NormBackwardWeight& a, std::int64_t first, std::int64_t count) {
  const std::int64_t width = a.x.columns / a.groups;
  Chunk x_buffer, dy_buffer, weight, bias;
  for (std::int64_t block = 0; block < a.x.rows; block += kRowsOfBlock) {
    for (std::int64_t i = 0; i < count; ++i) weight.values[i] = bias.values[i] = 0;
    const std::int64_t end = smaller(a.x.rows, block + kRowsOfBlock);
    for (std::int64_t row = block; row < end; ++row)
      for (std::int64_t g = 0; g < a.groups; ++g) {
        const float* x = load(a.x, row, g * width + first, count, x_buffer);
        const float* dy = load(a.dy, row, g * width + first, count, dy_buffer);
        const std::int64_t statistic = row * a.groups + g;
        const float mean = a.kind == NormKind::kLayerNorm ? a.mean.data()[statistic] : 0.0F;
        const float r = a.inverse_deviation.data()[statistic];
        for (std::int64_t i = 0; i < count; ++i) {
          weight.values[i] += dy[i] * ((x[i] - mean) * r);
          bias.values[i] += dy[i];
        }
      }
    for (std::int64_t i = 0; i < count; ++i) a.dweight.data()[first + i] += weight.values[i];
    if (a.dbias.data() != nullptr)
      for (std::int64_t i = 0; i < count; ++i) a.dbias.data()[first + i] += bias.values[i];
  }
}

}  // namespace

void run(const Launch&, const NormBackwardWeight& a) {
  for_each_chunk(a.x.columns / a.groups, [&](std::int64_t first, std::int64_t count) {
    add_weight_gradient(a, first, count);
  });
}

}  // namespace meshwright::cpu::MESHWRIGHT_CPU_LEVEL
