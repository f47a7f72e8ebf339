/// A third-party shared library that is loaded at run time, so that programs work without it, with
/// lookup of its functions by name.
#pragma once

#include <dlfcn.h>

#include <string>

namespace meshwright {

class LoadedLibrary {
 public:
  /// `product`: its name in messages.
  LoadedLibrary(std::string product, const char* file)
      : product_(std::move(product)), handle_(::dlopen(file, RTLD_NOW | RTLD_LOCAL)) {
    if (handle_ != nullptr) return;
    const char* why = ::dlerror();
    missing_ = "cannot load " + product_ + ": " + (why == nullptr ? file : why);
  }

  /// Null if it does not exist; missing() then names it.
  template <class Function>
  void find(Function*& function, const char* name) {
    find_if_there(function, name);
    if (function == nullptr && missing_.empty())
      missing_ = "the installed " + product_ + " has no function '" + name + "'";
  }
  /// Null if it does not exist.
  template <class Function>
  void find_if_there(Function*& function, const char* name) {
    if (handle_ != nullptr) function = reinterpret_cast<Function*>(::dlsym(handle_, name));
  }

  /// Why the library cannot be used; empty if it was loaded and has all required functions.
  const std::string& missing() const { return missing_; }

 private:
  std::string product_;
  void* handle_;
  std::string missing_;
};

}  // namespace meshwright
