#include "kernels/cpu/activation.hpp"
#include "kernels/cpu/kernels.hpp"

namespace meshwright::cpu::MESHWRIGHT_CPU_LEVEL {
void run(const Launch&, const Add& a) {
  combine(a.a, a.b, a.y, [](float u, float v) { return u + v; });
}

void run(const Launch&, const BiasAdd& a) {
  const ConstMatrix bias{a.bias.data, a.x.rows, a.bias.size, 0, a.bias.dtype};  // stride 0
  combine(a.x, bias, a.y, [](float u, float v) { return u + v; });
}

namespace {

void add_column_sums(const ConstMatrix& m, std::int64_t first_row, std::int64_t end_row,
                     float* sums) {
  Chunk buffer, block;
  for_each_chunk(m.columns, [&](std::int64_t first, std::int64_t count) {
    for (std::int64_t start = first_row; start < end_row; start += kRowsOfBlock) {
      for (std::int64_t i = 0; i < count; ++i) block.values[i] = 0;
      const std::int64_t end = smaller(end_row, start + kRowsOfBlock);
      for (std::int64_t row = start; row < end; ++row) {
        const float* x = load(m, row, first, count, buffer);
        for (std::int64_t i = 0; i < count; ++i) block.values[i] += x[i];
      }
      for (std::int64_t i = 0; i < count; ++i) sums[first + i] += block.values[i];
    }
  });
}

}  // namespace

void run(const Launch&, const BiasGradient& a) {
  add_column_sums(a.dy, 0, a.dy.rows, a.dbias.data());
}

void run(const Launch&, const GroupedBiasGradient& a) {
  for (std::int64_t e = 0; e < a.dbias.rows; ++e)
    add_column_sums(a.dy, a.offsets.data()[e], a.offsets.data()[e + 1],
                    static_cast<float*>(a.dbias.data) + e * a.dbias.stride);
}

void run(const Launch&, const RowGateForward& a) {
  Chunk x_buffer, y_buffer;
  for (std::int64_t row = 0; row < a.x.rows; ++row) {
    const float s = sigmoid_of(element_of(a.gate, row, 0));
    for_each_chunk(a.x.columns, [&](std::int64_t first, std::int64_t count) {
      const float* x = load(a.x, row, first, count, x_buffer);
      float* y = target(a.y, row, first, y_buffer);
      MESHWRIGHT_INDEPENDENT
      for (std::int64_t i = 0; i < count; ++i) y[i] = s * x[i];
      store(a.y, row, first, count, y);
    });
  }
}

void run(const Launch&, const RowGateBackward& a) {
  Chunk x_buffer, dy_buffer, dx_buffer;
  for (std::int64_t row = 0; row < a.x.rows; ++row) {
    const float s = sigmoid_of(element_of(a.gate, row, 0));
    Lanes product;
    for_each_chunk(a.x.columns, [&](std::int64_t first, std::int64_t count) {
      const float* x = load(a.x, row, first, count, x_buffer);
      const float* dy = load(a.dy, row, first, count, dy_buffer);
      product.add(count, [&](std::int64_t i) { return dy[i] * x[i]; });
      float* dx = target(a.dx, row, first, dx_buffer);
      MESHWRIGHT_INDEPENDENT
      for (std::int64_t i = 0; i < count; ++i) dx[i] = s * dy[i];
      store(a.dx, row, first, count, dx);
    });
    Chunk gate_buffer;
    float* dgate = target(a.dgate, row, 0, gate_buffer);
    *dgate = product.total() * s * (1 - s);
    store(a.dgate, row, 0, 1, dgate);
  }
}

void run(const Launch&, const Reduce& a) {
  const ConstMatrix into{a.into.data, 1, a.into.size, a.into.size, a.into.dtype};
  const ConstMatrix from{a.from.data, 1, a.from.size, a.from.size, a.from.dtype};
  const Matrix y{a.into.data, 1, a.into.size, a.into.size, a.into.dtype};
  if (a.reduction == Reduction::kSum)
    combine(into, from, y, [](float u, float v) { return u + v; });
  else
    combine(into, from, y, [](float u, float v) { return u > v ? u : v; });
}

void run(const Launch&, const SoftcapForward& a) {
  const float cap = a.cap, inverse = 1 / a.cap;
  Chunk x_buffer, y_buffer;
  for_each_chunk(a.y.size, [&](std::int64_t first, std::int64_t count) {
    const float* x = load(a.x, first, count, x_buffer);
    float* y = target(a.y, first, y_buffer);
    MESHWRIGHT_INDEPENDENT
    for (std::int64_t i = 0; i < count; ++i) y[i] = cap * tanh_of(x[i] * inverse);
    store(a.y, first, count, y);
  });
}

void run(const Launch&, const SoftcapBackward& a) {
  const float inverse = 1 / a.cap;
  Chunk y_buffer, dy_buffer, dx_buffer;
  for_each_chunk(a.dx.size, [&](std::int64_t first, std::int64_t count) {
    const float* y = load(a.y, first, count, y_buffer);
    const float* dy = load(a.dy, first, count, dy_buffer);
    float* dx = target(a.dx, first, dx_buffer);
    MESHWRIGHT_INDEPENDENT
    for (std::int64_t i = 0; i < count; ++i)
      dx[i] = dy[i] * (1 - y[i] * inverse * (y[i] * inverse));
    store(a.dx, first, count, dx);
  });
}

void run(const Launch&, const Cast& a) {
  const float scale = a.scale;
  Chunk x_buffer, y_buffer;
  for_each_chunk(a.y.size, [&](std::int64_t first, std::int64_t count) {
    const float* x = load(a.x, first, count, x_buffer);
    float* y = target(a.y, first, y_buffer);
    MESHWRIGHT_INDEPENDENT
    for (std::int64_t i = 0; i < count; ++i) y[i] = scale * x[i];
    store(a.y, first, count, y);
  });
}

void run(const Launch&, const Fill& a) {
  const float value = a.value;
  Chunk y_buffer;
  for_each_chunk(a.y.size, [&](std::int64_t first, std::int64_t count) {
    float* y = target(a.y, first, y_buffer);
    for (std::int64_t i = 0; i < count; ++i) y[i] = value;
    store(a.y, first, count, y);
  });
}

void run(const Launch&, const Total& a) {
  double sum = 0;
  for (std::size_t i = 0; i < a.x.size(); ++i) sum += static_cast<double>(a.x.data()[i]);
  *a.total = static_cast<float>(sum * static_cast<double>(a.scale));
}

void run(const Launch&, const MeanSquaredErrorForward& a) {
  Chunk x_buffer, t_buffer;
  for (std::int64_t row = 0; row < a.x.rows; ++row) {
    Lanes lanes;
    for_each_chunk(a.x.columns, [&](std::int64_t first, std::int64_t count) {
      const float* x = load(a.x, row, first, count, x_buffer);
      const float* t = load(a.target, row, first, count, t_buffer);
      lanes.add(count, [&](std::int64_t i) { return (x[i] - t[i]) * (x[i] - t[i]); });
    });
    a.loss.data()[row] = lanes.total() / static_cast<float>(a.x.columns);
  }
}

void run(const Launch&, const MeanSquaredErrorGradient& a) {
  const float factor = 2 * a.scale / static_cast<float>(a.x.columns);
  combine(a.x, a.target, a.dx, [=](float u, float v) { return factor * (u - v); });
}

}  // namespace meshwright::cpu::MESHWRIGHT_CPU_LEVEL
