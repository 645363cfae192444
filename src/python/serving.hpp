// Input: a question about a server of vLLM, from Python.
// Output: its answer as JSON and as text, both as the command line prints them.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "call.hpp"
#include "gpumem/serve/server_command.hpp"
#include "job_json.hpp"
#include "reports.hpp"
#include "serving_report.hpp"

namespace gpumem::python {

/// What serve(), serving_limits() and advise_server() are given.
struct ServingQuestion {
  std::string model;
  std::string gpu;
  std::string version;
  std::vector<std::string> command;
  std::map<std::string, std::string> options;  ///< by vLLM's names
};

/// The answer to "estimate", "limits" or "advice".
inline Report serving_answer(const std::string& asked, const ServingQuestion& question, std::int64_t deadline_ms) {
  const Running running;
  using Answer = std::pair<nlohmann::ordered_json, std::string>;
  auto [json, text] = without_gil(deadline_ms, [&]() -> Result<Answer> {
    session::Session& session = session::process_session();
    const Result<serve::ServingRequest> request =
        serve::serving_request_of({question.model, question.gpu, question.version, question.command, question.options});
    if (!request) return request.error();
    if (asked == "limits") {
      const auto limits = session.serving_limits(*request);
      if (!limits) return limits.error();
      return Answer{job_json::to_json(*limits), cli::to_text(*limits, cli::Terminal{})};
    }
    if (asked == "advice") {
      const auto advice = session.serving_advice(*request);
      if (!advice) return advice.error();
      return Answer{job_json::to_json(*advice), cli::to_text(*advice, cli::Terminal{})};
    }
    const auto estimate = session.serve(*request);
    if (!estimate) return estimate.error();
    const auto gpu = session.gpu(request->gpu);
    if (!gpu) return gpu.error();
    return Answer{job_json::to_json(*estimate, **gpu), cli::to_text(*estimate, cli::Terminal{})};
  });
  return Report::of(dumped(json), std::move(text));
}

inline void define_serving(py::module_& module) {
  module.def(
      "serve",
      [](const std::string& question, const py::bytes& model, const py::bytes& gpu, std::string version,
         std::vector<std::string> command, std::map<std::string, std::string> options, std::int64_t deadline_ms) {
        return serving_answer(question, {model, gpu, std::move(version), std::move(command), std::move(options)},
                              deadline_ms);
      },
      py::arg("question"), py::arg("model"), py::arg("gpu"), py::arg("version"), py::arg("command"), py::arg("options"),
      py::arg("deadline_ms"));
  std::vector<std::string_view> names;
  for (const serve::ServingOption& option : serve::serving_options()) names.push_back(option.name);
  module.attr("SERVING_OPTIONS") = texts(names);
}

}  // namespace gpumem::python
