#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/reference/element_access.hpp"
#include "kernels/reference/kernels.hpp"

namespace meshwright::reference {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Indices of one query of one head.
struct Query {
  std::int64_t sequence, head, query;
  std::int64_t row(const AttentionShape& s) const { return sequence * s.queries + query; }
  std::int64_t statistic(const AttentionShape& s) const {
    return (sequence * s.heads + head) * s.queries + query;
  }
  std::int64_t key_head(const AttentionShape& s) const {
    return head / (s.heads / s.key_value_heads);
  }
};

template <class Body>
void for_each_query(const AttentionShape& s, const Body& body) {
  for (std::int64_t b = 0; b < s.sequences; ++b)
    for (std::int64_t h = 0; h < s.heads; ++h)
      for (std::int64_t t = 0; t < s.queries; ++t) body(Query{b, h, t});
}

bool sees(const AttentionShape& s, std::int64_t query, std::int64_t key) {
  if (!s.causal) return true;
  const std::int64_t at_query = s.first_query + query, at_key = s.first_key + key;
  return at_key <= at_query && at_key >= first_key_seen(s, at_query);
}

/// scale q . k for all keys; -infinity where the query does not see the key.
std::vector<double> scores_of(const AttentionShape& s, const ConstMatrix& q, const ConstMatrix& k,
                              const Query& at_query) {
  std::vector<double> scores(static_cast<std::size_t>(s.keys), -kInfinity);
  for (std::int64_t key = 0; key < s.keys; ++key) {
    if (!sees(s, at_query.query, key)) continue;
    double sum = 0;
    for (std::int64_t d = 0; d < s.key_size; ++d)
      sum += at(q, at_query.row(s), at_query.head * s.key_size + d) *
             at(k, at_query.sequence * s.keys + key, at_query.key_head(s) * s.key_size + d);
    const double score = double{s.scale} * sum, cap = double{s.softcap};
    get(scores, key) = cap > 0 ? cap * std::tanh(score / cap) : score;
  }
  return scores;
}

/// Factor of a probability: 0 if dropped, 1 / (1 - p) if kept.
double dropout_factor(const AttentionShape& s, const Query& q, std::int64_t key) {
  const AttentionDropout& d = s.dropout;
  if (d.mask.probability == 0) return 1;
  const std::uint32_t row =
      dropout_row(d.mask.key, d.row_of(q.sequence, s.first_query + q.query, q.head));
  const bool kept = is_kept(row, s.first_key + key, dropout_threshold(d.mask.probability));
  return kept ? 1 / (1 - double{d.mask.probability}) : 0;
}

}  // namespace

void run(const Launch&, const AttentionForward& a) {
  const AttentionShape& s = a.shape;
  for_each_query(s, [&](const Query& query) {
    const std::vector<double> scores = scores_of(s, a.q, a.k, query);
    double maximum = -kInfinity, sum = 0;
    for (const double score : scores) maximum = std::max(maximum, score);
    // Scores that are all NaN have no maximum, and must not become zeros.
    const bool sees_any =
        std::any_of(scores.begin(), scores.end(), [](double score) { return score != -kInfinity; });
    for (const double score : scores) sum += sees_any ? std::exp(score - maximum) : 0;
    for (std::int64_t d = 0; d < s.value_size; ++d) {
      double out = 0;
      for (std::int64_t key = 0; sees_any && key < s.keys; ++key)
        out += dropout_factor(s, query, key) * std::exp(get(scores, key) - maximum) / sum *
               at(a.v, query.sequence * s.keys + key, query.key_head(s) * s.value_size + d);
      put(a.out, query.row(s), query.head * s.value_size + d, out);
    }
    get(a.log_sum_exp, query.statistic(s)) =
        static_cast<float>(sees_any ? maximum + std::log(sum) : -kInfinity);
  });
}

void run(const Launch&, const AttentionMerge& a) {
  const AttentionShape& s = a.shape;
  for_each_query(s, [&](const Query& query) {
    float& running = get(a.log_sum_exp, query.statistic(s));
    const double l = double{running}, m = double{get(a.block_log_sum_exp, query.statistic(s))};
    const double maximum = std::max(l, m);
    if (maximum == -kInfinity) return;  // no visible key in either
    const double merged = maximum + std::log(std::exp(l - maximum) + std::exp(m - maximum));
    for (std::int64_t d = 0; d < s.value_size; ++d) {
      const std::int64_t row = query.row(s), column = query.head * s.value_size + d;
      put(a.out, row, column,
          at(a.out, row, column) * std::exp(l - merged) +
              at(a.block, row, column) * std::exp(m - merged));
    }
    running = static_cast<float>(merged);
  });
}

void run(const Launch&, const AttentionSinks& a) {
  const AttentionShape& s = a.shape;
  for_each_query(s, [&](const Query& query) {
    float& running = get(a.log_sum_exp, query.statistic(s));
    const double l = double{running}, sink = at(a.sinks, query.head);
    const double maximum = std::max(l, sink);
    const double merged = maximum + std::log(std::exp(l - maximum) + std::exp(sink - maximum));
    for (std::int64_t d = 0; d < s.value_size; ++d) {
      const std::int64_t column = query.head * s.value_size + d;
      put(a.out, query.row(s), column, at(a.out, query.row(s), column) * std::exp(l - merged));
    }
    running = static_cast<float>(merged);
  });
}

void run(const Launch&, const AttentionSinksGradient& a) {
  const AttentionShape& s = a.shape;
  std::vector<double> gradient(static_cast<std::size_t>(s.heads), 0.0);
  for_each_query(s, [&](const Query& query) {
    const double probability =
        std::exp(at(a.sinks, query.head) - double{get(a.log_sum_exp, query.statistic(s))});
    get(gradient, query.head) -= probability * double{get(a.delta, query.statistic(s))};
  });
  for (std::int64_t h = 0; h < s.heads; ++h)
    get(a.dsinks, h) += static_cast<float>(get(gradient, h));
}

void run(const Launch&, const AttentionDelta& a) {
  const AttentionShape& s = a.shape;
  for_each_query(s, [&](const Query& query) {
    double sum = 0;
    for (std::int64_t d = 0; d < s.value_size; ++d) {
      const std::int64_t column = query.head * s.value_size + d;
      sum += at(a.out, query.row(s), column) * at(a.dout, query.row(s), column);
    }
    get(a.delta, query.statistic(s)) = static_cast<float>(sum);
  });
}

namespace {

/// Gradients are accumulated in double and written once.
struct Gradients {
  std::vector<double> dq, dk, dv;
};

std::vector<double> zeros(const ConstMatrix& like) {
  return std::vector<double>(static_cast<std::size_t>(like.rows * like.columns), 0.0);
}

void write(const Matrix& into, const std::vector<double>& gradient, bool accumulate) {
  for (std::int64_t r = 0; r < into.rows; ++r)
    for (std::int64_t i = 0; i < into.columns; ++i)
      put(into, r, i, get(gradient, r * into.columns + i) + (accumulate ? at(into, r, i) : 0));
}

void add_query(const AttentionBackward& a, const Query& query, Gradients& gradients) {
  const AttentionShape& s = a.shape;
  const std::vector<double> scores = scores_of(s, a.q, a.k, query);
  const double log_sum_exp = double{get(a.log_sum_exp, query.statistic(s))};
  const double delta = double{get(a.delta, query.statistic(s))};
  const std::int64_t q_column = query.head * s.key_size, o_column = query.head * s.value_size;
  for (std::int64_t key = 0; key < s.keys; ++key) {
    if (get(scores, key) == -kInfinity) continue;
    const std::int64_t key_row = query.sequence * s.keys + key;
    const std::int64_t k_column = query.key_head(s) * s.key_size;
    const std::int64_t v_column = query.key_head(s) * s.value_size;
    const double probability = std::exp(get(scores, key) - log_sum_exp);
    const double kept = dropout_factor(s, query, key);
    double dprobability = 0;
    for (std::int64_t d = 0; d < s.value_size; ++d) {
      const double dout = at(a.dout, query.row(s), o_column + d);
      dprobability += kept * dout * at(a.v, key_row, v_column + d);
      get(gradients.dv, key_row * a.dv.columns + v_column + d) += kept * probability * dout;
    }
    const double capped = s.softcap > 0 ? get(scores, key) / double{s.softcap} : 0;
    const double dscore =
        double{s.scale} * probability * (dprobability - delta) * (1 - capped * capped);
    for (std::int64_t d = 0; d < s.key_size; ++d) {
      get(gradients.dq, query.row(s) * a.dq.columns + q_column + d) +=
          dscore * at(a.k, key_row, k_column + d);
      get(gradients.dk, key_row * a.dk.columns + k_column + d) +=
          dscore * at(a.q, query.row(s), q_column + d);
    }
  }
}

}  // namespace

void run(const Launch&, const AttentionBackward& a) {
  Gradients gradients{zeros(a.q), zeros(a.k), zeros(a.v)};
  for_each_query(a.shape, [&](const Query& query) { add_query(a, query, gradients); });
  write(a.dq, gradients.dq, a.accumulate);
  write(a.dk, gradients.dk, a.accumulate);
  write(a.dv, gradients.dv, a.accumulate);
}

}  // namespace meshwright::reference
