#pragma once

namespace meshwright {

/// Expected maximum of n >= 1 independent standard normal variables: 0, 1 / sqrt(pi) = 0.5642, 3 /
/// (2 sqrt(pi)) = 0.8463, 1.0294, ... (Teichroew, Tables of expected values of order statistics,
/// Annals of Mathematical Statistics 27, 1956). Accurate to 1e-6.
double expected_maximum(int n);

}  // namespace meshwright
