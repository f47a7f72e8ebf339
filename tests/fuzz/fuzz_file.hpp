/// A file in a folder of its own, for readers that open their input themselves.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "core/base/check.hpp"

namespace meshwright {

class FuzzFile {
 public:
  explicit FuzzFile(const char* name = "input") {
    std::string folder =
        (std::filesystem::temp_directory_path() / "meshwright-fuzz-XXXXXX").string();
    MW_CHECK(::mkdtemp(folder.data()) != nullptr);
    folder_ = folder;
    path_ = folder_ / name;
  }
  FuzzFile(const FuzzFile&) = delete;
  FuzzFile& operator=(const FuzzFile&) = delete;
  ~FuzzFile() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  std::string path() const { return path_.string(); }
  void write(std::string_view content) const { write(path_, content); }
  /// A second file next to it with another extension; empty: removed.
  void write_beside(const char* extension, std::string_view content) const {
    std::filesystem::path beside = path_;
    beside.replace_extension(extension);
    if (content.empty())
      std::filesystem::remove(beside);
    else
      write(beside, content);
  }

 private:
  static void write(const std::filesystem::path& path, std::string_view content) {
    std::ofstream file(path, std::ios::binary | std::ios::trunc);
    file.write(content.data(), static_cast<std::streamsize>(content.size()));
    MW_CHECK(file.good());
  }
  std::filesystem::path folder_, path_;
};

}  // namespace meshwright
