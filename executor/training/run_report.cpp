#include "executor/training/run_report.hpp"

#include "executor/transport/wire.hpp"

namespace meshwright {
namespace {

void write(ByteWriter& writer, const std::optional<double>& number) {
  writer.number(static_cast<std::uint8_t>(number.has_value()));
  writer.number(number.value_or(0));
}

std::optional<double> read_optional(ByteReader& reader) {
  const bool has_value = reader.number<std::uint8_t>() != 0;
  const auto number = reader.number<double>();
  return has_value ? std::optional(number) : std::nullopt;
}

void write(ByteWriter& writer, const StepReport& report) {
  writer.number(std::int32_t{report.step});
  writer.number(static_cast<std::uint8_t>(report.is_whole));
  writer.number(report.loss);
  write(writer, report.gradient_norm);
  write(writer, report.validation_loss);
  writer.number(report.peak_memory.value);
  writer.number(static_cast<std::uint64_t>(report.spans.size()));
  for (const TaskSpan& span : report.spans) {
    writer.number(span.task.value);
    writer.number(span.start.value);
    writer.number(span.end.value);
  }
}

void read(ByteReader& reader, StepReport& report) {
  report.step = reader.number<std::int32_t>();
  report.is_whole = reader.number<std::uint8_t>() != 0;
  report.loss = reader.number<double>();
  report.gradient_norm = read_optional(reader);
  report.validation_loss = read_optional(reader);
  report.peak_memory = Bytes(reader.number<std::int64_t>());
  const auto count = reader.number<std::uint64_t>();
  for (std::uint64_t i = 0; i < count; ++i) {
    const TaskId task(reader.number<std::int32_t>());
    const Ticks start(reader.number<std::int64_t>());
    report.spans.push_back({task, start, Ticks(reader.number<std::int64_t>())});
  }
}

void write(ByteWriter& writer, const EndReport& report) {
  for (const Bytes bytes : report.peak_memory.by_class) writer.number(bytes.value);
  writer.number(static_cast<std::uint64_t>(report.parameters.size()));
  for (const ParameterValues& values : report.parameters) {
    writer.number(values.tensor.value);
    writer.number(values.first);
    writer.array(std::span<const float>(values.values));
  }
  write(writer, report.validation_loss);
}

void read(ByteReader& reader, EndReport& report) {
  for (Bytes& bytes : report.peak_memory.by_class) bytes = Bytes(reader.number<std::int64_t>());
  const auto count = reader.number<std::uint64_t>();
  for (std::uint64_t i = 0; i < count; ++i) {
    const TensorId tensor(reader.number<std::int32_t>());
    const auto first = reader.number<std::int64_t>();
    report.parameters.push_back({tensor, first, reader.array<float>()});
  }
  report.validation_loss = read_optional(reader);
}

}  // namespace

void add_element(std::vector<ParameterValues>& parameters, TensorId tensor, std::int64_t number,
                 float value) {
  const auto follows = [&](const ParameterValues& last) {
    return last.tensor == tensor &&
           last.first + static_cast<std::int64_t>(last.values.size()) == number;
  };
  if (parameters.empty() || !follows(parameters.back())) parameters.push_back({tensor, number, {}});
  parameters.back().values.push_back(value);
}

std::vector<std::byte> to_bytes(const RunReport& report) {
  ByteWriter writer;
  writer.number(static_cast<std::uint8_t>(report.index()));
  std::visit([&](const auto& what) { write(writer, what); }, report);
  return writer.take();
}

RunReport run_report_from(std::span<const std::byte> bytes) {
  ByteReader reader(bytes);
  RunReport report;
  if (reader.number<std::uint8_t>() == RunReport(EndReport()).index()) report = EndReport();
  std::visit([&](auto& what) { read(reader, what); }, report);
  if (!reader.is_at_end()) throw InvalidFrame();
  return report;
}

}  // namespace meshwright
