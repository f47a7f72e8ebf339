// Every level compiles Eigen's templates separately. CMakeLists.txt renames the namespace Eigen for
// each level, so that the linker merges nothing across levels (vector.hpp).
#include "kernels/cpu/products.hpp"

#define EIGEN_NO_DEBUG
#define EIGEN_DONT_PARALLELIZE
#include <Eigen/Core>

namespace meshwright::cpu::MESHWRIGHT_CPU_LEVEL {
namespace {

using Stored = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Source = Eigen::Map<const Stored, Eigen::Unaligned, Eigen::OuterStride<>>;
using Result = Eigen::Map<Stored, Eigen::Unaligned, Eigen::OuterStride<>>;

Source stored(const Factor& f, std::int64_t rows, std::int64_t columns) {
  return f.transposed ? Source(f.data, columns, rows, Eigen::OuterStride<>(f.stride))
                      : Source(f.data, rows, columns, Eigen::OuterStride<>(f.stride));
}

}  // namespace

void multiply(const FloatProduct& p) {
  Result c(p.c, p.m, p.n, Eigen::OuterStride<>(p.stride));
  if (!p.adds) c.setZero();
  if (p.k == 0) return;
  const Source a = stored(p.a, p.m, p.k), b = stored(p.b, p.k, p.n);
  if (p.a.transposed && p.b.transposed)
    c.noalias() += p.scale * a.transpose() * b.transpose();
  else if (p.a.transposed)
    c.noalias() += p.scale * a.transpose() * b;
  else if (p.b.transposed)
    c.noalias() += p.scale * a * b.transpose();
  else
    c.noalias() += p.scale * a * b;
}

Factor factor_of(const ConstMatrix& m, bool transposed, std::int64_t row, std::int64_t column,
                 std::int64_t rows, std::int64_t columns, float* buffer) {
  if (transposed) {
    const std::int64_t old_row = row, old_rows = rows;
    row = column, rows = columns, column = old_row, columns = old_rows;
  }
  const std::int64_t first = row * m.stride + column;
  if (m.dtype == Dtype::kFp32)
    return {static_cast<const float*>(m.data) + first, m.stride, transposed};
  const std::uint16_t* from = static_cast<const std::uint16_t*>(m.data) + first;
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t i = 0; i < columns; ++i)
      buffer[r * columns + i] = from_bf16(from[r * m.stride + i]);
  return {buffer, columns, transposed};
}

}  // namespace meshwright::cpu::MESHWRIGHT_CPU_LEVEL
