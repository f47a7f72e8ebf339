/// Splits long kernel calls into pieces with a heartbeat each, so that a busy rank is never taken
/// for hung (LaunchOptions::watchdog_timeout). The pieces compute bitwise the same as the whole
/// call; only a sum of squares is rounded once per piece.
#pragma once

#include <algorithm>

#include "kernels/attention.hpp"
#include "kernels/elementwise.hpp"
#include "kernels/gemm.hpp"
#include "kernels/optimizer.hpp"

namespace meshwright {

/// Each piece takes far less than a second on one core, and about half a second when dozens of
/// threads share it.
struct PieceLimits {
  std::int64_t elements = std::int64_t{1} << 22;
  double flop = 4e9;
};

/// Kernels with calls that are short anyway.
template <class Arguments, class Call>
void in_pieces(const Arguments& all, const PieceLimits&, const Call& call) {
  call(all);
}

/// Calls visit(first, count) over [0, all).
template <class Visit>
void for_each_piece(std::int64_t all, std::int64_t most, const Visit& visit) {
  for (std::int64_t first = 0; first < all; first += most)
    visit(first, std::min(most, all - first));
}

// ---- vectors of parameters ----

/// Arguments with vectors of equal length.
template <class Call, class Arguments, class First, class... More>
void vectors_in_pieces(const Arguments& all, const PieceLimits& limits, const Call& call,
                       First Arguments::*first, More Arguments::*... more) {
  for_each_piece((all.*first).size, limits.elements, [&](std::int64_t begin, std::int64_t count) {
    Arguments piece = all;
    const auto cut = [&](auto vector) { piece.*vector = part_of(all.*vector, begin, count); };
    cut(first);
    (cut(more), ...);
    call(piece);
  });
}

template <class Call>
void in_pieces(const Fill& all, const PieceLimits& limits, const Call& call) {
  vectors_in_pieces(all, limits, call, &Fill::y);
}
template <class Call>
void in_pieces(const Cast& all, const PieceLimits& limits, const Call& call) {
  vectors_in_pieces(all, limits, call, &Cast::x, &Cast::y);
}
template <class Call>
void in_pieces(const Reduce& all, const PieceLimits& limits, const Call& call) {
  vectors_in_pieces(all, limits, call, &Reduce::into, &Reduce::from);
}
template <class Call>
void in_pieces(const SquaredNorm& all, const PieceLimits& limits, const Call& call) {
  vectors_in_pieces(all, limits, call, &SquaredNorm::x);
}

/// `state`: the optimizer state, which may be empty.
template <class Update, class Call, class... State>
void update_in_pieces(const Update& all, const PieceLimits& limits, const Call& call,
                      State... state) {
  for_each_piece(all.gradient.size, limits.elements, [&](std::int64_t first, std::int64_t count) {
    Update piece = all;
    const auto cut = [&](std::span<float> Update::*vector) {
      if (!(all.*vector).empty())
        piece.*vector =
            (all.*vector).subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count));
    };
    cut(&Update::master);
    (cut(state), ...);
    piece.gradient = part_of(all.gradient, first, count);
    if (!all.parameter.empty()) piece.parameter = part_of(all.parameter, first, count);
    call(piece);
  });
}

template <class Call>
void in_pieces(const AdamW& all, const PieceLimits& limits, const Call& call) {
  update_in_pieces(all, limits, call, &AdamW::first_moment, &AdamW::second_moment);
}
template <class Call>
void in_pieces(const Sgd& all, const PieceLimits& limits, const Call& call) {
  update_in_pieces(all, limits, call, &Sgd::velocity);
}

// ---- matrix products ----

/// Splits by rows of the result, many at once, since every piece reads all of b.
template <class Call>
void in_pieces(const Gemm& all, const PieceLimits& limits, const Call& call) {
  constexpr std::int64_t kFewestRows = 64;
  const std::int64_t depth = all.transpose_a ? all.a.rows : all.a.columns;
  const double row = 2.0 * static_cast<double>(depth) * static_cast<double>(all.c.columns);
  const std::int64_t rows = static_cast<std::int64_t>(limits.flop / std::max(row, 1.0));
  if (rows >= all.c.rows) return call(all);
  for_each_piece(all.c.rows, std::max(rows / kFewestRows * kFewestRows, kFewestRows),
                 [&](std::int64_t first, std::int64_t count) {
                   Gemm piece = all;
                   piece.a = all.transpose_a ? columns_of(all.a, first, count)
                                             : rows_of(all.a, first, count);
                   piece.c = rows_of(all.c, first, count);
                   if (!all.gelu.empty()) piece.gelu = rows_of(all.gelu, first, count);
                   if (!all.slope_at.empty()) piece.slope_at = rows_of(all.slope_at, first, count);
                   call(piece);
                 });
}

// ---- attention ----

/// Some sequences, or some key heads of a single sequence with the query heads that use them.
struct AttentionPiece {
  AttentionShape shape;
  std::int64_t first_sequence = 0, first_key_head = 0, heads_of_key_head = 1;
  bool has_all_heads = true;

  template <class M>
  M cut(const M& of, std::int64_t length, std::int64_t first_head, std::int64_t heads,
        std::int64_t size) const {
    const M rows = rows_of(of, first_sequence * length, shape.sequences * length);
    return has_all_heads ? rows : columns_of(rows, first_head * size, heads * size);
  }
  template <class M>
  M queries(const M& of, std::int64_t size) const {
    return cut(of, shape.queries, first_key_head * heads_of_key_head, shape.heads, size);
  }
  template <class M>
  M keys(const M& of, std::int64_t size) const {
    return cut(of, shape.keys, first_key_head, shape.key_value_heads, size);
  }
  /// The part of an array [B, A, Tq].
  template <class T>
  std::span<T> statistics(std::span<T> of, std::int64_t all_heads) const {
    const std::int64_t first = first_sequence * all_heads + first_key_head * heads_of_key_head;
    return of.subspan(static_cast<std::size_t>(first * shape.queries),
                      static_cast<std::size_t>(shape.sequences * shape.heads * shape.queries));
  }
};

template <class Visit>
void for_each_piece(const AttentionShape& all, double flop_of_head, const PieceLimits& limits,
                    const Visit& visit) {
  const std::int64_t heads_of_key_head = all.heads / all.key_value_heads;
  const double of_key_head = flop_of_head * static_cast<double>(heads_of_key_head);
  const auto fits = [&](double each) {
    return std::max<std::int64_t>(1, static_cast<std::int64_t>(limits.flop / each));
  };
  AttentionPiece piece{all, 0, 0, heads_of_key_head};
  const std::int64_t key_heads = std::min(all.key_value_heads, fits(of_key_head));
  const std::int64_t sequences = key_heads < all.key_value_heads
                                     ? 1
                                     : fits(of_key_head * static_cast<double>(all.key_value_heads));
  piece.has_all_heads = key_heads == all.key_value_heads;
  for_each_piece(all.sequences, sequences, [&](std::int64_t first, std::int64_t count) {
    for_each_piece(all.key_value_heads, key_heads, [&](std::int64_t head, std::int64_t some) {
      piece.first_sequence = first;
      piece.first_key_head = head;
      piece.shape.sequences = count;
      piece.shape.key_value_heads = some;
      piece.shape.heads = some * heads_of_key_head;
      piece.shape.dropout.first_sequence = all.dropout.first_sequence + first;
      piece.shape.dropout.first_head = all.dropout.first_head + head * heads_of_key_head;
      visit(piece);
    });
  });
}

/// For one head of one sequence: two products forward, five backward.
inline double flop_of_head(const AttentionShape& s, int products) {
  return products * static_cast<double>(s.queries) * static_cast<double>(s.keys) *
         static_cast<double>(s.key_size + s.value_size);
}

/// Calls cut(part, piece) for the arguments that only one of forward and backward has.
template <class Arguments, class Call, class Cut>
void attention_in_pieces(const Arguments& all, int products, const PieceLimits& limits,
                         const Call& call, const Cut& cut) {
  const AttentionShape& s = all.shape;
  for_each_piece(s, flop_of_head(s, products), limits, [&](const AttentionPiece& part) {
    Arguments piece = all;
    piece.shape = part.shape;
    piece.q = part.queries(all.q, s.key_size);
    piece.k = part.keys(all.k, s.key_size);
    piece.v = part.keys(all.v, s.value_size);
    piece.log_sum_exp = part.statistics(all.log_sum_exp, s.heads);
    cut(part, piece);
    call(piece);
  });
}

template <class Call>
void in_pieces(const AttentionForward& all, const PieceLimits& limits, const Call& call) {
  attention_in_pieces(all, 2, limits, call, [&](const auto& part, AttentionForward& piece) {
    piece.out = part.queries(all.out, all.shape.value_size);
  });
}

template <class Call>
void in_pieces(const AttentionBackward& all, const PieceLimits& limits, const Call& call) {
  const AttentionShape& s = all.shape;
  attention_in_pieces(all, 5, limits, call, [&](const auto& part, AttentionBackward& piece) {
    piece.dout = part.queries(all.dout, s.value_size);
    piece.delta = part.statistics(all.delta, s.heads);
    piece.dq = part.queries(all.dq, s.key_size);
    piece.dk = part.keys(all.dk, s.key_size);
    piece.dv = part.keys(all.dv, s.value_size);
    if (!all.out.empty()) piece.out = part.queries(all.out, s.value_size);
  });
}

}  // namespace meshwright
