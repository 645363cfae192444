// Input: the words of a question, and the model that it is about.
// Output: the answer, in forms that are made when they are asked for.
#pragma once

#include <memory>

#include "answer.hpp"
#include "gpumem/core/result.hpp"
#include "summary.hpp"
#include "words.hpp"

namespace gpumem::capi {

struct Question {
  const gpumem_summary* summary = nullptr;
  Words words;
};

using Answered = core::Result<std::unique_ptr<gpumem_answer>>;

// About a training job.
[[nodiscard]] Answered answer_estimate(Question& question);
[[nodiscard]] Answered answer_fit(Question& question);
/// Which changes would make it fit.
[[nodiscard]] Answered answer_advise(Question& question);
[[nodiscard]] Answered answer_plan(Question& question);
/// Every option of the job, as it was understood.
[[nodiscard]] Answered answer_job(Question& question);
/// What was read.
[[nodiscard]] Answered answer_summary(Question& question);

// About a server.
[[nodiscard]] Answered answer_serve(Question& question);
[[nodiscard]] Answered answer_serving_limits(Question& question);
[[nodiscard]] Answered answer_serving_advice(Question& question);

// About a post-training job.
[[nodiscard]] Answered answer_posttrain(Question& question);
[[nodiscard]] Answered answer_posttrain_limits(Question& question);
[[nodiscard]] Answered answer_posttrain_advice(Question& question);
[[nodiscard]] Answered answer_posttrain_layouts(Question& question);

// About what there is.
[[nodiscard]] Answered answer_gpus(Question& question);
[[nodiscard]] Answered answer_estimators(Question& question);
/// The options of each kind of question, and the names that they take.
[[nodiscard]] Answered answer_options(Question& question);
/// The GPUs of this machine.
[[nodiscard]] Answered answer_server(Question& question);

}  // namespace gpumem::capi
