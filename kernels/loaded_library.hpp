/// A library of someone else that is opened when it is first needed, so that programs work without
/// it, and its functions by their names.
#pragma once

#include <dlfcn.h>

#include <string>

namespace meshwright {

class LoadedLibrary {
 public:
  /// `product`: what messages call it.
  LoadedLibrary(std::string product, const char* file)
      : product_(std::move(product)), handle_(::dlopen(file, RTLD_NOW | RTLD_LOCAL)) {
    if (handle_ != nullptr) return;
    const char* why = ::dlerror();
    missing_ = product_ + " cannot be opened: " + (why == nullptr ? file : why);
  }

  /// Null where there is none, and then missing() says so.
  template <class Function>
  void find(Function*& function, const char* name) {
    find_if_there(function, name);
    if (function == nullptr && missing_.empty()) missing_ = "this " + product_ + " has no " + name;
  }
  /// Null where there is none.
  template <class Function>
  void find_if_there(Function*& function, const char* name) {
    if (handle_ != nullptr) function = reinterpret_cast<Function*>(::dlsym(handle_, name));
  }

  /// Empty: it is there, with all that was looked for.
  const std::string& missing() const { return missing_; }

 private:
  std::string product_;
  void* handle_;
  std::string missing_;
};

}  // namespace meshwright
