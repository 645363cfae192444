// Input: a question about a post-training job, from Python.
// Output: its answer as JSON and as text, both as the command line prints them.
#pragma once

#include <pybind11/stl.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "call.hpp"
#include "gpumem/posttrain/launch.hpp"
#include "gpumem/posttrain/post_training_options.hpp"
#include "job_json.hpp"
#include "post_training_report.hpp"
#include "reports.hpp"

namespace gpumem::python {

/// What posttrain() and its like are given.
struct PostTrainingQuestion {
  std::string model;
  std::string gpu;
  std::vector<std::pair<std::string, std::string>> settings;  ///< of a program's file
  std::vector<std::string> command;
  std::map<std::string, std::string> options;
  std::int64_t gpus = 0;  ///< of a plan
};

inline Result<posttrain::PostTrainingRequest> post_training_request(const PostTrainingQuestion& question) {
  posttrain::PostTrainingRequest request;
  request.training.summary = question.model;
  request.training.gpu = question.gpu;
  posttrain::PostTrainingWords words{.command = question.command, .options = question.options};
  for (const auto& [key, value] : question.settings) words.settings.push_back({key, value});
  if (const core::Status read = posttrain::read_words(words, request); !read) return read.error();
  return request;
}

/// The answer to "estimate", "limits", "advice" or "layouts".
inline Report post_training_answer(const std::string& asked, const PostTrainingQuestion& question,
                                   std::int64_t deadline_ms) {
  const Running running;
  using Answer = std::pair<nlohmann::ordered_json, std::string>;
  auto [json, text] = without_gil(deadline_ms, [&]() -> Result<Answer> {
    session::Session& session = session::process_session();
    const Result<posttrain::PostTrainingRequest> request = post_training_request(question);
    if (!request) return request.error();
    const auto answered = [](const auto& answer) -> Result<Answer> {
      if (!answer) return answer.error();
      return Answer{job_json::to_json(*answer), cli::to_text(*answer, cli::Terminal{})};
    };
    if (asked == "limits") return answered(session.post_training_limits(*request));
    if (asked == "advice") return answered(session.post_training_advice(*request));
    if (asked == "layouts") return answered(session.post_training_layouts(*request, question.gpus));
    const auto estimate = session.post_training(*request);
    if (!estimate) return estimate.error();
    const auto gpu = session.gpu(request->training.gpu);
    if (!gpu) return gpu.error();
    return Answer{job_json::to_json(*estimate, **gpu), cli::to_text(*estimate, **gpu, cli::Terminal{})};
  });
  return Report::of(dumped(json), std::move(text));
}

inline void define_post_training(py::module_& module) {
  module.def(
      "posttrain",
      [](const std::string& question, const py::bytes& model, const py::bytes& gpu,
         std::vector<std::pair<std::string, std::string>> settings, std::vector<std::string> command,
         std::map<std::string, std::string> options, std::int64_t gpus, std::int64_t deadline_ms) {
        return post_training_answer(
            question, {model, gpu, std::move(settings), std::move(command), std::move(options), gpus}, deadline_ms);
      },
      py::arg("question"), py::arg("model"), py::arg("gpu"), py::arg("settings"), py::arg("command"),
      py::arg("options"), py::arg("gpus"), py::arg("deadline_ms"));
}

}  // namespace gpumem::python
