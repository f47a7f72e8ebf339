/// Evaluated points of a sweep as lines of JSON. Reading one gives exactly the point that was
/// written, so that results do not depend on where a point was evaluated.
///
///   {"sweep": "91c5…", "point": 3, "step_time_ps": …, "period_ps": …, "plan": {…}}
///   {"sweep": "91c5…", "point": 4, "problems": [{"where": …, "what": …, "hint": …}]}
#pragma once

#include <cstdio>
#include <memory>
#include <string>
#include <string_view>

#include "cli/sweep/sweep_study.hpp"

namespace meshwright {

/// Without the newline. `key` is that of the study.
std::string line_of(const std::string& key, std::size_t index, const SweepPoint& point);

/// Puts the point of a line into the study, and returns its index. InputError at `where` if the
/// line is invalid, or belongs to another sweep.
std::size_t take_line(std::string_view line, const std::string& where, const std::string& key,
                      SweepStudy& study);

/// A file to which points are appended as they are evaluated.
class PointsFile {
 public:
  PointsFile() = default;  ///< none: nothing is read or written
  PointsFile(std::string path, std::string key);

  bool exists() const { return !path_.empty(); }
  const std::string& path() const { return path_; }
  /// Returns the number of points that the file has for the study. An unfinished last line, which
  /// a killed process leaves behind, is removed. Throws InputError.
  std::size_t read_into(SweepStudy& study);
  /// Throws RuntimeFailure. Points that have failed are not written: they are tried again.
  void append(std::size_t index, const SweepPoint& point);
  void remove();

 private:
  [[noreturn]] void fail(int error) const;
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::string path_, key_;
  std::unique_ptr<std::FILE, Close> file_;  ///< opened by the first append()
};

}  // namespace meshwright
