/// The back ends of the kernels. A new one is a value of Backend, its row in kBackends, and a
/// folder with its kernels, which cmake builds into its plug-in.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string_view>

namespace meshwright {

enum class Backend : std::uint8_t {
  kReference,  ///< plain loops, sums in double; the other back ends are tested against it
  kCpu,        ///< vectorized; runs on the calling thread
  kCuda        ///< NVIDIA GPUs
};

/// Back ends in a plug-in compute in the memory of a device, the others in that of the host.
struct BackendTraits {
  Backend backend;
  std::string_view name;           ///< of --device
  const char* plugin = nullptr;    ///< file name; null: part of the program
  const char* variable = nullptr;  ///< environment variable that names another file
};

inline constexpr BackendTraits kBackends[]{{.backend = Backend::kReference, .name = "reference"},
                                           {.backend = Backend::kCpu, .name = "cpu"},
                                           {.backend = Backend::kCuda,
                                            .name = "cuda",
                                            .plugin = "libmeshwright_cuda.so",
                                            .variable = "MESHWRIGHT_CUDA_LIBRARY"}};
inline constexpr std::size_t kBackendCount = std::size(kBackends);

constexpr const BackendTraits& traits_of(Backend backend) {
  return kBackends[static_cast<std::size_t>(backend)];
}
static_assert(std::ranges::all_of(kBackends, [](const BackendTraits& traits) {
  return traits_of(traits.backend).name == traits.name;
}));

constexpr std::string_view name_of(Backend backend) { return traits_of(backend).name; }
constexpr std::optional<Backend> backend_from_name(std::string_view name) {
  for (const BackendTraits& traits : kBackends)
    if (traits.name == name) return traits.backend;
  return std::nullopt;
}
constexpr bool has_device_memory(Backend backend) { return traits_of(backend).plugin != nullptr; }

}  // namespace meshwright
