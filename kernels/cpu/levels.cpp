#include "kernels/cpu/levels.hpp"

#ifdef MESHWRIGHT_ONEDNN
#include "kernels/cpu/onednn.hpp"
#endif

namespace meshwright {

// Each is defined in table.cpp, compiled for that level.
namespace cpu::generic {
KernelTable table();
}
#ifdef MESHWRIGHT_X86_LEVELS
namespace cpu::avx2 {
KernelTable table();
}
namespace cpu::avx512 {
KernelTable table();
}
#endif

std::vector<CpuLevel> runnable_cpu_levels() {
  std::vector<CpuLevel> levels{{"generic", cpu::generic::table()}};
#ifdef MESHWRIGHT_X86_LEVELS
  // Features of -march=x86-64-v3 and -v4 (x86-64 psABI, microarchitecture levels).
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
      __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2"))
    levels.push_back({"avx2", cpu::avx2::table()});
  if (levels.size() == 2 && __builtin_cpu_supports("avx512f") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
    levels.push_back({"avx512", cpu::avx512::table()});
#endif
  return levels;
}

#ifdef MESHWRIGHT_ONEDNN
std::vector<CpuLevel> cpu_variants() {
  std::vector<CpuLevel> variants = runnable_cpu_levels();
  variants.push_back({"onednn", onednn_table(OneDnnUse::kPossible)});
  return variants;
}
KernelTable fastest_cpu_table() { return onednn_table(OneDnnUse::kFaster); }
std::string products_by() {
  const std::string library = onednn_summary(OneDnnUse::kFaster);
  return library.empty() ? "Eigen" : library;
}
#else
std::vector<CpuLevel> cpu_variants() { return runnable_cpu_levels(); }
KernelTable fastest_cpu_table() { return runnable_cpu_levels().back().table; }
std::string products_by() { return "Eigen"; }
#endif

}  // namespace meshwright
