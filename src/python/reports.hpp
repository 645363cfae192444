// Input: an answer.
// Output: Report, which gives Python the text and the JSON that the command line would print of it.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "call.hpp"

namespace gpumem::python {

/// Made when it is asked for; or, once it was pickled, as it was.
struct Report {
  std::function<std::string()> json;
  std::function<std::string()> text;

  static Report of(std::string json, std::string text) {
    return {[json = std::move(json)] { return json; }, [text = std::move(text)] { return text; }};
  }
};

inline std::string dumped(const nlohmann::ordered_json& json) {
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

inline void define_report(py::module_& module) {
  py::class_<Report>(module, "Report", "What the command line would print of an answer.")
      .def("json", [](const Report& self) { return text(self.json()); })
      .def("text", [](const Report& self) { return text(self.text()); })
      .def(py::pickle([](const Report& self) { return py::make_tuple(text(self.json()), text(self.text())); },
                      [](const py::tuple& state) {
                        return Report::of(state[0].cast<std::string>(), state[1].cast<std::string>());
                      }));
}

}  // namespace gpumem::python
