/// Any bytes are the choices of a training job: if its plan is valid, all properties of
/// tests/properties/plan_properties.hpp hold.
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <span>

#include "core/base/error.hpp"
#include "tests/properties/plan_properties.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace meshwright;
  static const JobParts parts = load_job_parts();
  Choices choices(std::span(data, size));
  const RandomJob job =
      draw_job(parts, choices, {.ranks = 16, .microbatches = 8, .has_senseless_numbers = true});
  try {
    const PropertyResult result =
        check_properties(job, {.ranks = 16, .tasks = 4'000, .reads_all_texts = false});
    if (result.broken.empty()) return 0;
    fmt::print(stderr, "{}\n", to_text(job));
    for (const std::string& broken : result.broken) fmt::print(stderr, "{}\n", broken);
    std::abort();
  } catch (const InputError& error) {  // check_plan() must have found it
    fmt::print(stderr, "{}\n{}\n", to_text(job), error.what());
    std::abort();
  }
}
