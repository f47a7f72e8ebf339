// One pass over the events with one function per kind; then operators are nested and everything is
// sorted for lookup.
#include "core/formats/kineto.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/formats/event_file.hpp"

namespace meshwright {
namespace {

constexpr std::int64_t kLongestKinetoEvent = 100'000'000'000'000;  ///< ns: a day
constexpr std::size_t kMostNameBytes = std::size_t{256} << 20;
constexpr std::size_t kMostGroups = 65'536, kMostGroupRanks = std::size_t{1} << 20;

enum class Category : std::uint8_t { kOther, kOperator, kCall, kGpu, kAnnotation };

/// One event of any kind; cleared and reused.
struct RawEvent : EventTimes {
  Category category = Category::kOther;
  KinetoGpuKind gpu_kind = KinetoGpuKind::kKernel;
  std::int64_t name = -1;
  std::string thread;  ///< process and thread
  std::int64_t correlation = -1, external_id = -1, sequence = -1;
  KinetoInputs inputs;
  KinetoCollective collective;
  bool has_inputs = false, has_collective = false;

  void clear() {
    phase = 0;
    category = Category::kOther;
    name = correlation = external_id = sequence = -1;
    thread.clear();
    start.reset(), duration.reset();
    if (has_inputs) inputs = {};
    if (has_collective) collective = {};
    has_inputs = has_collective = false;
  }
};

/// Before 2022 the categories were "Operator", "Runtime", "Kernel", "Memcpy" and "Memset".
void read_category(std::string_view text, RawEvent& event) {
  const auto is = [&](std::string_view now, std::string_view before) {
    return text == now || text == before;
  };
  if (is("cpu_op", "Operator")) {
    event.category = Category::kOperator;
  } else if (is("cuda_runtime", "Runtime") || text == "cuda_driver") {
    event.category = Category::kCall;
  } else if (is("kernel", "Kernel") || is("gpu_memcpy", "Memcpy") || is("gpu_memset", "Memset")) {
    event.category = Category::kGpu;
    event.gpu_kind = is("kernel", "Kernel")       ? KinetoGpuKind::kKernel
                     : is("gpu_memcpy", "Memcpy") ? KinetoGpuKind::kCopy
                                                  : KinetoGpuKind::kFill;
  } else if (text == "user_annotation") {
    event.category = Category::kAnnotation;
  }
}

class KinetoReader {
 public:
  KinetoReader(std::string_view text, std::string_view where,
               const std::function<void(std::size_t)>& progress)
      : text_(text),
        file_(text, where,
              {.name = "Kineto trace",
               .source = "PyTorch's profiler",
               .most_events = kMostKinetoEvents},
              progress),
        scanner_(file_.scanner) {}

  KinetoTrace read() {
    file_.read([this] { read_event(); }, [this](std::string_view key) { read_member(key); });
    trace_.dropped += file_.dropped;
    drop_far_events();
    sort();
    nest();
    return std::move(trace_);
  }

 private:
  // ---- the file ----

  void read_member(std::string_view key) {
    if (key == "distributedInfo" && scanner_.next() == JsonScanner::Kind::kObject) {
      read_job();
    } else if (key == "deviceProperties" && scanner_.next() == JsonScanner::Kind::kArray) {
      read_devices();
    } else if (key == "baseTimeNanoseconds") {
      base_ns_ = file_.base_time().value_or(base_ns_);
    } else if (key.size() < 64 && key.find("version") != std::string_view::npos) {
      if (const std::string_view version = number_or_text(); !version.empty())
        trace_.versions[std::string(key)] = std::string(version.substr(0, 64));
    } else {
      scanner_.skip();
    }
  }

  void read_devices() {
    scanner_.for_each_object([&] {
      trace_.devices = std::min(trace_.devices + 1, 1 << 16);
      for (bool has = scanner_.enter_object(); has; has = scanner_.next_member()) {
        if (scanner_.key() == "name" && trace_.device.empty())
          trace_.device = std::string(number_or_text().substr(0, 256));
        else
          scanner_.skip();
      }
    });
  }

  void read_job() {
    scanner_.for_each_member([&](std::string_view key) {
      if (key == "rank")
        trace_.rank = file_.integer();
      else if (key == "world_size")
        trace_.world_size = file_.integer();
      else if (key == "nccl_version")
        trace_.versions["nccl_version"] = std::string(number_or_text().substr(0, 64));
      else if (key == "pg_config" && scanner_.next() == JsonScanner::Kind::kArray)
        read_groups();
      else
        scanner_.skip();
    });
  }

  void read_groups() {
    scanner_.for_each_object([&] {
      std::string name;
      std::vector<std::int64_t> ranks;
      for (bool has = scanner_.enter_object(); has; has = scanner_.next_member()) {
        if (scanner_.key() == "pg_name")
          name = std::string(number_or_text().substr(0, 256));
        else if (scanner_.key() == "ranks" && scanner_.next() == JsonScanner::Kind::kArray)
          read_ranks(ranks);
        else
          scanner_.skip();
      }
      if (!ranks.empty() && trace_.groups.size() < kMostGroups)
        trace_.groups[name] = std::move(ranks);
    });
  }

  void read_ranks(std::vector<std::int64_t>& ranks) {
    for (bool more = scanner_.enter_array(); more; more = scanner_.next_element())
      if (const auto rank = file_.integer(); rank && ranks.size() < kMostGroupRanks)
        ranks.push_back(*rank);
  }

  std::string_view number_or_text() { return file_.number_or_text(); }
  /// The value as written; empty if it is long.
  std::string_view raw_value() {
    scanner_.next();  // skips blanks
    const std::size_t begin = scanner_.position();
    scanner_.skip();
    const std::string_view raw = text_.substr(begin, scanner_.position() - begin);
    return raw.size() <= kLongestKinetoInputs ? raw : std::string_view();
  }

  // ---- events ----

  void read_event() {
    event_.clear();
    scanner_.for_each_member([&](std::string_view key) {
      if (file_.read_times(key, event_)) return;
      if (key == "name") {
        event_.name = name_of(number_or_text());
      } else if (key == "cat") {
        read_category(number_or_text(), event_);
      } else if (key == "pid" || key == "tid") {
        event_.thread += key[0];
        event_.thread += number_or_text();
      } else if (key == "args" && scanner_.next() == JsonScanner::Kind::kObject) {
        read_arguments(event_);
      } else {
        scanner_.skip();
      }
    });
    take(event_);
  }

  void read_arguments(RawEvent& event) {
    scanner_.for_each_member([&](std::string_view key) {
      if (key == "correlation")
        event.correlation = file_.integer().value_or(-1);
      else if (key == "External id" || key == "external id")
        event.external_id = file_.integer().value_or(-1);
      else if (key == "Sequence number")
        event.sequence = file_.integer().value_or(-1);
      else if (!read_inputs(key, event) && !read_collective(key, event))
        scanner_.skip();
    });
  }

  bool read_inputs(std::string_view key, RawEvent& event) {
    std::string* field = nullptr;
    if (key == "Input Dims" || key == "Input dims")
      field = &event.inputs.dims;
    else if (key == "Input type")
      field = &event.inputs.types;
    else if (key == "Input Strides")
      field = &event.inputs.strides;
    else if (key == "Concrete Inputs")
      field = &event.inputs.values;
    if (field == nullptr) return false;
    *field = raw_value();
    event.has_inputs = true;
    return true;
  }

  bool read_collective(std::string_view key, RawEvent& event) {
    KinetoCollective& c = event.collective;
    const auto text = [&](std::string& field) {
      constexpr std::size_t kLongest = 4096;
      field = std::string(number_or_text().substr(0, kLongest));
    };
    const auto number = [&](std::int64_t& field) {
      constexpr std::int64_t kMost = std::int64_t{1} << 50;
      field = std::clamp<std::int64_t>(file_.integer().value_or(0), 0, kMost);
    };
    if (key == "Collective name")
      text(c.name);
    else if (key == "dtype")
      text(c.dtype);
    else if (key == "In msg nelems")
      number(c.sent);
    else if (key == "Out msg nelems")
      number(c.received);
    else if (key == "Group size")
      number(c.group_size);
    else if (key == "Process Group Name")
      text(c.group);
    else if (key == "Process Group Ranks" && scanner_.next() == JsonScanner::Kind::kText)
      text(c.ranks);
    else
      return false;
    event.has_collective = true;
    return true;
  }

  std::uint32_t name_of(std::string_view text) {
    const std::size_t known = trace_.names.size();
    const std::uint32_t index = index_of_text(text, name_index_, trace_.names);
    if (trace_.names.size() > known) name_bytes_ += text.size();
    if (name_bytes_ > kMostNameBytes)
      file_.reject(fmt::format("names of more than {} bytes in total", kMostNameBytes));
    return index;
  }

  std::uint32_t thread_of(const std::string& key) {
    return thread_index_.try_emplace(key, static_cast<std::uint32_t>(thread_index_.size()))
        .first->second;
  }

  /// The index of an equal value in `values`, which gets a new entry if there is none; -1 beyond
  /// the limit.
  template <class Value>
  std::int32_t interned(const Value& value, std::size_t bytes, std::map<Value, std::int32_t>& known,
                        std::vector<Value>& values) {
    const auto at = known.find(value);
    if (at != known.end()) return at->second;
    input_bytes_ += bytes;
    if (input_bytes_ > kMostKinetoInputBytes) return -1;
    const auto index = static_cast<std::int32_t>(values.size());
    values.push_back(value);
    known.emplace(value, index);
    return index;
  }

  void take(const RawEvent& event) {
    if (event.phase == '\0') ++trace_.dropped;
    if (event.phase != 'X' || event.category == Category::kOther) return;
    const std::int64_t duration = event.duration.value_or(0);
    if (!event.start || event.name < 0 || duration < 0 || duration > kLongestKinetoEvent) {
      ++trace_.dropped;
      return;
    }
    const std::int64_t start = *event.start, end = start + duration;
    const auto name = static_cast<std::uint32_t>(event.name);
    switch (event.category) {
      case Category::kOperator:
        trace_.operators.push_back({start, end, event.external_id, event.sequence,
                                    thread_of(event.thread), name, inputs_of(event)});
        return;
      case Category::kCall:
        trace_.calls.push_back({start, end, event.correlation, thread_of(event.thread), name});
        return;
      case Category::kGpu:
        trace_.gpu.push_back({start, end, event.correlation, event.external_id,
                              thread_of(event.thread), name, collective_of(event), event.gpu_kind});
        return;
      case Category::kAnnotation:
        take_range({start, end, name});
        return;
      case Category::kOther:
        return;
    }
  }

  std::int32_t inputs_of(const RawEvent& event) {
    if (!event.has_inputs || event.inputs.dims.empty()) return -1;
    const KinetoInputs& i = event.inputs;
    return interned(i, i.dims.size() + i.types.size() + i.strides.size() + i.values.size(),
                    input_index_, trace_.inputs);
  }
  std::int32_t collective_of(const RawEvent& event) {
    if (!event.has_collective || event.collective.name.empty()) return -1;
    return interned(event.collective, event.collective.ranks.size() + event.collective.name.size(),
                    collective_index_, trace_.collectives);
  }

  void take_range(const KinetoRange& range) {
    const std::string_view name = trace_.name(range.name);
    if (name.starts_with("ProfilerStep#")) trace_.steps.push_back(range);
    if (name.starts_with("Optimizer.step#")) trace_.updates.push_back(range);
  }

  // ---- after the events ----

  void drop_far_events() {
    const auto is_far = [&](auto& event) {
      event.start_ns += base_ns_, event.end_ns += base_ns_;
      return event.start_ns < -kLatestEventTime || event.start_ns > kLatestEventTime;
    };
    trace_.dropped += std::erase_if(trace_.operators, is_far);
    trace_.dropped += std::erase_if(trace_.calls, is_far);
    trace_.dropped += std::erase_if(trace_.gpu, is_far);
    trace_.dropped += std::erase_if(trace_.steps, is_far);
    trace_.dropped += std::erase_if(trace_.updates, is_far);
  }

  void sort() {
    const auto by_start = [](const auto& a, const auto& b) { return a.start_ns < b.start_ns; };
    std::stable_sort(trace_.operators.begin(), trace_.operators.end(),
                     [](const KinetoOperator& a, const KinetoOperator& b) {
                       if (a.thread != b.thread) return a.thread < b.thread;
                       if (a.start_ns != b.start_ns) return a.start_ns < b.start_ns;
                       return a.end_ns > b.end_ns;  // the outer one first
                     });
    std::stable_sort(
        trace_.calls.begin(), trace_.calls.end(),
        [](const KinetoCall& a, const KinetoCall& b) { return a.correlation < b.correlation; });
    std::stable_sort(trace_.gpu.begin(), trace_.gpu.end(), by_start);
    std::stable_sort(trace_.steps.begin(), trace_.steps.end(), by_start);
    std::stable_sort(trace_.updates.begin(), trace_.updates.end(), by_start);
  }

  void nest() {
    std::vector<std::int32_t> open;
    for (std::size_t i = 0; i < trace_.operators.size(); ++i) {
      KinetoOperator& op = trace_.operators[i];
      const auto encloses = [&](std::int32_t candidate) {
        const KinetoOperator& outer = trace_.operators[static_cast<std::size_t>(candidate)];
        return outer.thread == op.thread && outer.end_ns >= op.end_ns;
      };
      while (!open.empty() && !encloses(open.back())) open.pop_back();
      op.parent = open.empty() ? -1 : open.back();
      open.push_back(static_cast<std::int32_t>(i));
    }
  }

  std::string_view text_;
  EventFile file_;
  JsonScanner& scanner_;
  RawEvent event_;
  KinetoTrace trace_;
  std::int64_t base_ns_ = 0;
  std::size_t name_bytes_ = 0, input_bytes_ = 0;
  TextIndex name_index_, thread_index_;
  std::map<KinetoInputs, std::int32_t> input_index_;
  std::map<KinetoCollective, std::int32_t> collective_index_;
};

}  // namespace

KinetoTrace read_kineto_trace(std::string_view text, std::string_view where,
                              const std::function<void(std::size_t)>& progress) {
  return KinetoReader(text, where, progress).read();
}

}  // namespace meshwright
