#include "serving.hpp"

#include <string>
#include <vector>

#include "estimate_result.hpp"
#include "gpumem/gpumem.hpp"
#include "gpumem/serve/server_command.hpp"
#include "held.hpp"
#include "message.hpp"
#include "sized.hpp"

namespace gpumem::capi {

namespace {

constexpr std::size_t kFirstServing = sizeof(gpumem_serving_result);

std::string word_or(const char* text, const char* otherwise) {
  return text == nullptr || *text == '\0' ? otherwise : text;
}

core::Result<serve::ServingRequest> serving_request(const char* config, const char* gpu, const char* engine_version,
                                                    const char* const* words, std::size_t count) {
  serve::ServingWords asked{word_or(config, ""), word_or(gpu, job::kDefaultGpu), word_or(engine_version, "")};
  if (asked.config.empty()) return refused("config is a null pointer or empty");
  if (asked.config == "-") asked.config = "./-";  // a file of that name, as everywhere in the C API
  const auto command = texts_of(words, count, "words");
  if (!command) return command.error();
  asked.command = *command;
  return serve::serving_request_of(asked);
}

}  // namespace

core::Status make_server(const char* config, const char* gpu, const char* engine_version, const char* const* words,
                         std::size_t count, gpumem_serving_result* result) {
  if (result == nullptr) return refused("result is a null pointer");
  if (auto checked = check_size(result->size, kFirstServing, "gpumem_serving_result"); !checked) return checked;
  const core::Result<serve::ServingRequest> request = serving_request(config, gpu, engine_version, words, count);
  if (!request) return request.error();
  const core::Result<serve::ServingEstimate> found = process_session().serve(*request);
  if (!found) return found.error();
  gpumem_serving_result given = room_of(result);
  given.requested_bytes = found->requested.count();
  given.expected_bytes = found->expected().count();
  given.weights_bytes = found->weights.count();
  given.activation_bytes = found->activation.count();
  given.outside_pytorch_bytes = found->outside_pytorch.count();
  given.cuda_graph_bytes = found->cuda_graphs.count();
  given.kv_cache_bytes = found->kv_cache.count();
  given.kv_cache_needed_bytes = found->kv_cache_needed.count();
  given.kv_cache_blocks = found->kv_cache_blocks;
  given.kv_cache_tokens = found->kv_cache_tokens;
  given.max_model_len = found->max_model_len;
  given.largest_max_model_len = found->largest_max_model_len;
  given.max_concurrency = found->concurrency;
  given.verdict = verdict_of(found->verdict());
  given.starts = found->starts ? 1 : 0;
  write_text(found->reason, given.reason, given.reason_size);
  give(given, result);
  return core::Done{};
}

}  // namespace gpumem::capi
