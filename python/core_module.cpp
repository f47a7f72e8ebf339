/// The extension module: calls of the program's commands, without kernels and ranks, whose results
/// and errors are values.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <future>
#include <string>
#include <tuple>
#include <vector>

#include "cli/flags/usage_error.hpp"
#include "cli/program/call_program.hpp"
#include "cli/terminal/interrupt.hpp"
#include "core/base/error.hpp"

namespace meshwright {
namespace {

namespace py = nanobind;

/// How long a Ctrl-C waits until it is noticed.
constexpr std::chrono::milliseconds kSignalInterval{50};

/// Raises meshwright.NAME([(where, what, hint), …]).
[[noreturn]] void raise_error(const char* name, const std::vector<Diagnostic>& diagnostics) {
  py::list problems;
  for (const Diagnostic& d : diagnostics)
    problems.append(
        py::make_tuple(py::str(d.where.c_str()), py::str(d.what.c_str()), py::str(d.hint.c_str())));
  const py::object type = py::module_::import_("meshwright._errors").attr(name);
  const py::object error = type(problems);
  PyErr_SetObject(type.ptr(), error.ptr());
  throw py::python_error();
}

/// Waits on the caller's thread, since only Python's main thread may handle signals. After one
/// whose handler raises, asks the command to stop and throws the exception of the handler.
Outcome wait_for(std::future<Outcome>& running) {
  while (true) {
    {
      const py::gil_scoped_release release;
      if (running.wait_for(kSignalInterval) == std::future_status::ready) return running.get();
    }
    if (PyErr_CheckSignals() == 0) continue;
    py::python_error raised;
    {
      const py::gil_scoped_release release;
      set_interrupted(true);
      running.wait();
      set_interrupted(false);
    }
    throw raised;
  }
}

/// (text, exit status, notes) of a command.
std::tuple<std::string, int, std::string> call(const std::vector<std::string>& arguments) {
  try {
    std::future<Outcome> running =
        std::async(std::launch::async, [&] { return call_program(kPlanningCommands, arguments); });
    Outcome outcome = wait_for(running);
    return {std::move(outcome.text), outcome.exit_code, std::move(outcome.notes)};
  } catch (const UsageError& error) {
    raise_error("UsageError", error.diagnostics());
  } catch (const InputError& error) {
    raise_error("InputError", error.diagnostics());
  } catch (const RuntimeFailure& error) {
    raise_error("EnvironmentFailure", {error.diagnostic()});
  } catch (const Interrupted&) {  // by a Ctrl-C in a call of another thread
    PyErr_SetNone(PyExc_KeyboardInterrupt);
    throw py::python_error();
  }
}

}  // namespace
}  // namespace meshwright

NB_MODULE(_core, module) {
  module.attr("version") = MESHWRIGHT_VERSION;
  module.def("call", &meshwright::call, nanobind::arg("arguments"),
             "Runs a command of the program; returns its text, exit status and notes.");
}
