// Input: the body of a call from Python.
// Output: its answer, or a Failure, which the module turns into an exception of the package. The GIL is released while
// the body runs. Calls are counted, and the interpreter waits for them when it ends.
#pragma once

#include <pybind11/pybind11.h>

#include <atomic>
#include <chrono>
#include <string_view>
#include <thread>
#include <utility>

#include "gpumem/all.hpp"
#include "gpumem/core/deadline.hpp"

namespace gpumem::python {

namespace py = pybind11;

/// Lives while a call is under way. Python ends a thread that asks for the GIL once the interpreter goes, which C++
/// frames do not survive. So before that close() waits for the calls of daemon threads. Counted with the GIL held.
class Running {
 public:
  Running() {
    if (closer() != std::thread::id()) turn_away();
    ++count();
  }
  Running(const Running& /*other*/) : Running(Within{}) {}
  Running& operator=(const Running&) = delete;
  ~Running() { --count(); }

  /// For an error that leaves a call: what Python makes of it belongs to the call.
  [[nodiscard]] static Running within_call() { return Running(Within{}); }

  /// No call begins any more; waits for those that have begun, though not for ever.
  static void close() {
    constexpr int kMostWaits = 10'000;
    closer() = std::this_thread::get_id();
    const py::gil_scoped_release released;
    for (int waits = 0; count() > 0 && waits < kMostWaits; ++waits) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  /// In a child process, which has none of the threads that were under way.
  static void forget() { count() = 0; }

 private:
  struct Within {};
  explicit Running(Within /*call*/) { ++count(); }

  /// The thread that ends the interpreter is told. The others are daemon threads, which end with the process: until
  /// then they stop, as they would at the next line of Python.
  static void turn_away() {
    if (closer() == std::this_thread::get_id()) {
      throw std::runtime_error("gpumem cannot be called any more: the interpreter is shutting down");
    }
    const py::gil_scoped_release released;
    while (true) std::this_thread::sleep_for(std::chrono::hours(1));
  }

  static std::atomic<std::int64_t>& count() {
    static std::atomic<std::int64_t> running = 0;
    return running;
  }
  /// The thread that called close(); guarded by the GIL.
  static std::thread::id& closer() {
    static std::thread::id thread;
    return thread;
  }
};

/// An error on its way to Python.
struct Failure {
  Error error;
  Running running;
};

/// Text for Python. What is no UTF-8 (a piece of a file in a message) is replaced.
inline py::str text(std::string_view bytes) {
  PyObject* decoded = PyUnicode_DecodeUTF8(bytes.data(), static_cast<Py_ssize_t>(bytes.size()), "replace");
  if (decoded == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::str>(decoded);
}

inline py::object text_or_none(std::string_view bytes) { return bytes.empty() ? py::none() : py::object(text(bytes)); }

template <typename Texts>
py::tuple texts(const Texts& list) {
  py::tuple tuple(list.size());
  for (std::size_t index = 0; index < list.size(); ++index) tuple[index] = text(list[index]);
  return tuple;
}

/// Raises gpumem.UsageError, InputError or NoEstimateError.
inline void raise(const Error& error) {
  const py::module_ errors = py::module_::import("gpumem._errors");
  const py::object line = error.place.line > 0 ? py::object(py::int_(error.place.line)) : py::none();
  const py::object made = errors.attr("error_of")(
      core::exit_code(error.code), text(core::to_string(error)), text(core::to_string(error.code)), text(error.message),
      text_or_none(error.place.file), line, text_or_none(error.place.element));
  PyErr_SetObject(py::type::of(made).ptr(), made.ptr());
}

/// Runs `work`, which gives a Result, without the GIL and within a deadline; an error becomes a Failure.
template <typename Work>
auto without_gil(std::int64_t deadline_ms, const Work& work) {
  auto result = [&] {
    const py::gil_scoped_release released;
    const core::Deadline deadline(deadline_ms);
    return work();
  }();
  if (!result) throw Failure{result.error(), Running::within_call()};
  return *std::move(result);
}

}  // namespace gpumem::python
