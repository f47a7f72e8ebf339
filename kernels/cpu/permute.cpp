#include "kernels/cpu/kernels.hpp"

namespace meshwright::cpu::MESHWRIGHT_CPU_LEVEL {

void run(const Launch&, const SortByExpert& a) {
  std::int32_t* counts = a.counts.data();
  const std::int64_t experts = static_cast<std::int64_t>(a.counts.size());
  const std::int64_t slots = static_cast<std::int64_t>(a.experts.size());
  for (std::int64_t e = 0; e < experts; ++e) counts[e] = 0;
  for (std::int64_t slot = 0; slot < slots; ++slot) ++counts[a.experts.data()[slot]];
  std::int32_t row = 0;  // counts become the next free row of each expert
  for (std::int64_t e = 0; e < experts; ++e) {
    const std::int32_t count = counts[e];
    counts[e] = row;
    row += count;
  }
  for (std::int64_t slot = 0; slot < slots; ++slot) {
    const std::int32_t to = counts[a.experts.data()[slot]]++;
    a.slot_of_row.data()[to] = static_cast<std::int32_t>(slot);
    a.row_of_slot.data()[slot] = to;
  }
  // Now each is the end of its expert, which is where the next one starts.
  for (std::int64_t e = experts - 1; e > 0; --e) counts[e] -= counts[e - 1];
}

void run(const Launch&, const GatherRows& a) {
  Chunk x_buffer, y_buffer;
  for (std::int64_t r = 0; r < a.y.rows; ++r) {
    const std::int64_t from = a.index.data()[r];
    const float scale = a.scales.empty() || from < 0 ? 1.0F : a.scales.data()[from];
    for_each_chunk(a.y.columns, [&](std::int64_t first, std::int64_t count) {
      if (from < 0) {
        float* zeros = target(a.y, r, first, y_buffer);
        for (std::int64_t i = 0; i < count; ++i) zeros[i] = 0;
        store(a.y, r, first, count, zeros);
        return;
      }
      const float* x = load(a.x, from / a.copies, first, count, x_buffer);
      float* y = target(a.y, r, first, y_buffer);
      for (std::int64_t i = 0; i < count; ++i) y[i] = scale * x[i];
      store(a.y, r, first, count, y);
    });
  }
}

void run(const Launch&, const CombineRows& a) {
  Chunk x_buffer, y_buffer;
  for (std::int64_t n = 0; n < a.y.rows; ++n)
    for_each_chunk(a.y.columns, [&](std::int64_t first, std::int64_t count) {
      float* y = target(a.y, n, first, y_buffer);
      for (std::int64_t i = 0; i < count; ++i) y[i] = 0;
      for (std::int64_t slot = n * a.copies; slot < (n + 1) * a.copies; ++slot) {
        const std::int64_t row = a.index.data()[slot];
        if (row < 0) continue;
        const float weight = a.weights.empty() ? 1.0F : a.weights.data()[slot];
        const float* x = load(a.x, row, first, count, x_buffer);
        for (std::int64_t i = 0; i < count; ++i) y[i] += weight * x[i];
      }
      store(a.y, n, first, count, y);
    });
}

void run(const Launch&, const CombineWeightGradient& a) {
  Chunk x_buffer, dy_buffer;
  for (std::int64_t slot = 0; slot < static_cast<std::int64_t>(a.index.size()); ++slot) {
    const std::int64_t row = a.index.data()[slot];
    Lanes product;
    if (row >= 0)
      for_each_chunk(a.dy.columns, [&](std::int64_t first, std::int64_t count) {
        const float* dy = load(a.dy, slot / a.copies, first, count, dy_buffer);
        const float* x = load(a.x, row, first, count, x_buffer);
        product.add(count, [&](std::int64_t i) { return dy[i] * x[i]; });
      });
    a.dweights.data()[slot] = product.total();
  }
}

}  // namespace meshwright::cpu::MESHWRIGHT_CPU_LEVEL
