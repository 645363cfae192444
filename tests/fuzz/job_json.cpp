// One line of `gpumem batch`: a job as JSON.
#include "job_json.hpp"

#include "fuzz.hpp"

namespace {

std::shared_ptr<const gpumem::ModelGraph> small_model() {
  gpumem::GraphBuilder builder("fuzzed");
  builder.infer_edges();
  const gpumem::model::Attribute features[] = {{"in_features", std::int64_t{8}}, {"out_features", std::int64_t{4}}};
  builder.add(
      {.name = "head", .op = gpumem::ops::vocabulary().find_op("linear"), .attributes = features, .parameters = 36});
  return std::make_shared<const gpumem::ModelGraph>(*std::move(builder).build());
}

}  // namespace

GPUMEM_FUZZ_TARGET(job_json) {
  static const auto model = small_model();
  const auto json = job_json::parse_json(input);
  if (!json) return false;
  const auto request = job_json::request_from(*json, {});
  if (!request) return require_readable(request.error(), input), false;
  const auto job = job::job_from(*request, model);
  if (!job) return require_readable(job.error(), input), false;
  require_sound(estimate(*job), *job, input);
  return true;
}
