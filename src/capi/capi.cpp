// The entry points of gpumem.h. Each one checks what it was given, does its work within the caller's deadline, and
// turns whatever comes of it into a status and a message.
#include "gpumem/gpumem.h"
#include "gpumem/job/job_options.hpp"

#include <cstring>
#include <filesystem>

#include "estimate_result.hpp"
#include "gpumem/all.hpp"
#include "gpumem/core/deadline.hpp"
#include "gpumem/core/file.hpp"
#include "gpumem/place/policies.hpp"
#include "gpumem/summary/model_folder.hpp"
#include "guarded.hpp"
#include "held.hpp"
#include "job_struct.hpp"
#include "layouts.hpp"
#include "post_training.hpp"
#include "serving.hpp"
#include "sized.hpp"
#include "summary.hpp"

namespace gpumem::capi {

namespace {

/// The sizes of the structs in the first version of the API, which callers of it will always pass.
constexpr std::size_t kFirstReadOptions = sizeof(gpumem_read_options);
constexpr std::size_t kFirstSummaryInfo = sizeof(gpumem_summary_info);
constexpr std::size_t kFirstEstimate = offsetof(gpumem_estimate_result, assumed);
constexpr std::size_t kFirstFit = offsetof(gpumem_fit_result, safe);
constexpr std::size_t kFirstGpu = sizeof(gpumem_server_gpu);
constexpr std::size_t kFirstRequest = sizeof(gpumem_request);
constexpr std::size_t kFirstPlacement = sizeof(gpumem_placement);
constexpr std::size_t kFirstDecision = sizeof(gpumem_decision);

std::string text_or(const char* text, const char* otherwise) {
  return text == nullptr || *text == '\0' ? otherwise : text;
}

/// Done if a struct that leaves has room for its first version.
template <typename Struct>
core::Status check_result(const Struct* result, std::size_t first, const char* name) {
  if (result == nullptr) return null_pointer(name);
  std::size_t size = 0;
  std::memcpy(&size, result, sizeof size);
  return check_size(size, first, name);
}

// --- Summaries --------------------------------------------------------------------------------------------------

constexpr std::int64_t kUsualLargest = std::int64_t{16} << 20;

Result<gpumem_read_options> options_of(const gpumem_read_options* options) {
  gpumem_read_options known = GPUMEM_READ_OPTIONS_INIT;
  if (options != nullptr) {
    const Result<gpumem_read_options> given = taken(options, kFirstReadOptions, "gpumem_read_options");
    if (!given) return given.error();
    known = *given;
  }
  if (known.reserved != 0) return refused("gpumem_read_options.reserved must be 0");
  if (known.largest_bytes < 0) return refused("gpumem_read_options.largest_bytes is negative");
  if (known.largest_bytes == 0) known.largest_bytes = kUsualLargest;
  return known;
}

core::Status read_into(std::string_view text, const std::string& file, bool lenient, gpumem_summary** summary) {
  Result<ModelGraph> graph = summary::read(text, {&ops::vocabulary(), file, lenient});
  if (!graph) return graph.error();
  *summary = std::make_unique<gpumem_summary>(*std::move(graph)).release();
  return core::Done{};
}

core::Status read_file(const char* path, const gpumem_read_options* given, gpumem_summary** summary) {
  if (path == nullptr) return null_pointer("path");
  if (summary == nullptr) return null_pointer("summary");
  const Result<gpumem_read_options> options = options_of(given);
  if (!options) return options.error();
  const core::Deadline deadline(options->deadline_ms);
  const Result<std::string> text = core::read_regular_file(path, static_cast<std::size_t>(options->largest_bytes));
  if (text) return read_into(*text, path, options->lenient != 0, summary);
  // It may be the name of a model, as on the command line. What is there and cannot be read, or may be there, is no
  // name.
  std::error_code failure;
  const bool there = std::filesystem::exists(path, failure);
  const bool has_head = !summary::named_model(path).head.empty();
  if (!has_head && (!summary::is_hub_name(path) || there || failure)) return text.error();
  Result<ModelGraph> named = summary::read_named(path, {&ops::vocabulary(), path, options->lenient != 0},
                                                 static_cast<std::size_t>(options->largest_bytes), text.error());
  if (!named) return named.error();
  *summary = std::make_unique<gpumem_summary>(*std::move(named)).release();
  return core::Done{};
}

core::Status read_memory(const char* text, std::size_t length, const gpumem_read_options* given,
                         gpumem_summary** summary) {
  if (text == nullptr) return null_pointer("text");
  if (summary == nullptr) return null_pointer("summary");
  const Result<gpumem_read_options> options = options_of(given);
  if (!options) return options.error();
  if (length > static_cast<std::uint64_t>(options->largest_bytes)) {
    return refused("the text has " + core::to_string(core::Bytes(static_cast<std::int64_t>(length))) +
                   ", more than gpumem_read_options.largest_bytes allows");
  }
  const core::Deadline deadline(options->deadline_ms);
  return read_into({text, length}, {}, options->lenient != 0, summary);
}

core::Status describe(const gpumem_summary* summary, gpumem_summary_info* info) {
  if (summary == nullptr) return null_pointer("summary");
  if (auto checked = check_result(info, kFirstSummaryInfo, "gpumem_summary_info"); !checked) return checked;
  const ModelGraph& graph = *summary->graph;
  gpumem_summary_info known = GPUMEM_SUMMARY_INFO_INIT;
  known.format = graph.format().c_str();
  known.layers = static_cast<std::int64_t>(graph.layers().size());
  known.unknown_layers = graph.unknown_layers();
  known.parameters = graph.parameters();
  known.trainable_parameters = graph.trainable_parameters();
  known.printed_batch_size = graph.printed_batch_size().value_or(kNotTold);
  known.warnings = static_cast<std::int64_t>(graph.warnings().size());
  give(known, info);
  return core::Done{};
}

// --- Jobs -------------------------------------------------------------------------------------------------------

using job::JobRequest;

core::Status parse_job(const char* text, std::size_t length, gpumem_job** job) {
  if (text == nullptr) return null_pointer("json");
  if (job == nullptr) return null_pointer("job");
  return job_from_json({text, length}, job);
}

core::Status make_job(const char* const* names, const char* const* values, std::size_t count, gpumem_job** job) {
  if (count > 0 && names == nullptr) return null_pointer("names");
  if (count > 0 && values == nullptr) return null_pointer("values");
  if (job == nullptr) return null_pointer("job");
  return job_from_words(names, values, count, job);
}

// --- Estimates --------------------------------------------------------------------------------------------------

core::Status make_estimate(const gpumem_summary* summary, const gpumem_job* given, gpumem_estimate_result* result) {
  if (summary == nullptr) return null_pointer("summary");
  const Result<gpumem_job> job = taken(given, kFirstJob, "gpumem_job");
  if (!job) return job.error();
  if (auto checked = check_result(result, kFirstEstimate, "gpumem_estimate_result"); !checked) return checked;
  const core::Deadline deadline(job->deadline_ms);
  const Result<JobRequest> request = request_of(*job);
  if (!request) return request.error();
  const Result<MemoryEstimate> estimate = process_session().estimate(*request, summary->model);
  if (!estimate) return estimate.error();
  const auto gpu = process_session().gpu(request->gpu);
  if (!gpu) return gpu.error();
  give_estimate(*estimate, **gpu, result);
  return core::Done{};
}

using FitSearch = Result<Fit> (Session::*)(const JobRequest& request, std::shared_ptr<const Model> model);

constexpr FitSearch kFindsBatch = &Session::fit;
constexpr FitSearch kFindsSequence = &Session::fit_sequence;

void give_fit(const Fit& fit, gpumem_fit_result* result) {
  gpumem_fit_result known = GPUMEM_FIT_RESULT_INIT;
  known.batch_size = fit.batch_size;
  known.sequence_length = fit.grows == estimate::Grows::sequence ? fit.size : 0;
  known.estimates = fit.estimates;
  known.at_least = fit.at_least ? 1 : 0;
  known.has_next = fit.next ? 1 : 0;
  known.model_ends = fit.model_ends ? 1 : 0;
  known.safe = fit.safe.size;
  known.without_flushes = fit.without_flushes.size;
  give(known, result);
}

core::Status make_fit(const gpumem_summary* summary, const gpumem_job* given, FitSearch search,
                      gpumem_fit_result* result, gpumem_estimate_result* at_most, gpumem_estimate_result* one_more) {
  if (summary == nullptr) return null_pointer("summary");
  const Result<gpumem_job> job = taken(given, kFirstJob, "gpumem_job");
  if (!job) return job.error();
  if (auto checked = check_result(result, kFirstFit, "gpumem_fit_result"); !checked) return checked;
  for (const gpumem_estimate_result* wanted : {at_most, one_more}) {
    if (wanted == nullptr) continue;
    if (auto checked = check_result(wanted, kFirstEstimate, "gpumem_estimate_result"); !checked) return checked;
  }
  const core::Deadline deadline(job->deadline_ms);
  const Result<JobRequest> request = request_of(*job);
  if (!request) return request.error();
  const Result<Fit> fit = (process_session().*search)(*request, summary->model);
  if (!fit) return fit.error();
  const auto gpu = process_session().gpu(request->gpu);
  if (!gpu) return gpu.error();
  give_fit(*fit, result);
  if (at_most != nullptr && fit->estimate) give_estimate(*fit->estimate, **gpu, at_most);
  if (one_more != nullptr && fit->next) give_estimate(*fit->next, **gpu, one_more);
  return core::Done{};
}

// --- Placement --------------------------------------------------------------------------------------------------

constexpr std::int32_t kMostJobs = 256;
constexpr std::size_t kMostGpus = std::size_t{1} << 16;

/// Policies ask how much is set aside and by how many: the first job holds the memory of all.
core::Status add_jobs(const gpumem_server_gpu& from, place::ServerGpu& gpu) {
  if (from.jobs < 0 || from.jobs > kMostJobs) {
    return refused("GPU " + core::quoted(gpu.id) + " has " + std::to_string(from.jobs) + " jobs; 0 to 256 are taken");
  }
  if (from.set_aside_bytes < 0)
    return refused("GPU " + core::quoted(gpu.id) + " has a negative number of bytes set aside");
  // Memory that is set aside is somebody's.
  const std::int32_t jobs = from.jobs == 0 && from.set_aside_bytes > 0 ? 1 : from.jobs;
  if (from.exclusive != 0 && jobs > 1)
    return refused("GPU " + core::quoted(gpu.id) + " has several jobs, and one must have it to itself");
  for (std::int32_t job = 0; job < jobs; ++job) {
    const core::Bytes memory(job == 0 ? from.set_aside_bytes : 0);
    const bool exclusive = from.exclusive != 0;
    if (auto added = gpu.jobs.add({std::to_string(job), memory, 0.0, exclusive}); !added) return added;
  }
  return core::Done{};
}

Result<place::Server> server_of(const gpumem_server_gpu* gpus, std::size_t count) {
  if (gpus == nullptr) return null_pointer("gpus");
  if (count > kMostGpus) return refused("a server has " + std::to_string(count) + " GPUs; 65,536 are the most");
  std::size_t stride = 0;
  if (count > 0) std::memcpy(&stride, gpus, sizeof stride);
  place::Server server;
  for (std::size_t index = 0; index < count; ++index) {
    const char* at = reinterpret_cast<const char*>(gpus) + index * stride;
    const Result<gpumem_server_gpu> from =
        taken(reinterpret_cast<const gpumem_server_gpu*>(at), kFirstGpu, "gpumem_server_gpu");
    if (!from) return from.error();
    if (from->size != stride) return refused("the structs of an array of gpumem_server_gpu must have one size");
    place::ServerGpu gpu;
    gpu.id = text_or(from->id, std::to_string(index).c_str());
    gpu.total = core::Bytes(from->total_bytes);
    gpu.used = core::Bytes(from->used_bytes);
    gpu.smact = from->smact;
    if (auto added = add_jobs(*from, gpu); !added) return added.error();
    server.gpus.push_back(std::move(gpu));
  }
  if (auto valid = place::validate(server); !valid) return valid.error();
  return server;
}

Result<place::Request> request_of(const gpumem_request& from, const std::string& id) {
  if (from.reserved != 0) return refused("gpumem_request.reserved must be 0");
  if (from.memory_bytes < kNotTold || from.alone_bytes < kNotTold) return refused("a job asks for negative memory");
  place::Request request;
  request.id = id;
  request.gpus = from.gpus == 0 ? 1 : from.gpus;
  if (from.memory_bytes != kNotTold) request.memory = core::Bytes(from.memory_bytes);
  if (from.alone_bytes != kNotTold) request.alone = core::Bytes(from.alone_bytes);
  request.smact = from.smact;
  request.exclusive = from.exclusive != 0;
  if (auto valid = place::validate(request); !valid) return valid.error();
  return request;
}

Result<gpumem_placement> placement_of(const gpumem_placement* given) {
  if (given == nullptr) return gpumem_placement GPUMEM_PLACEMENT_INIT;
  Result<gpumem_placement> known = taken(given, kFirstPlacement, "gpumem_placement");
  if (!known) return known;
  if (known->reserved != 0) return refused("gpumem_placement.reserved must be 0");
  if (known->free_floor_bytes < 0) return refused("gpumem_placement.free_floor_bytes is negative");
  if (known->smact_cap != known->smact_cap) return refused("gpumem_placement.smact_cap is not a number");
  return known;
}

static_assert(static_cast<int>(place::Refusal::never) == GPUMEM_REFUSED_NEVER);
static_assert(static_cast<int>(place::Refusal::occupied) == GPUMEM_REFUSED_OCCUPIED);
static_assert(static_cast<int>(place::Refusal::no_estimate) == GPUMEM_REFUSED_NO_ESTIMATE);
static_assert(static_cast<int>(place::Refusal::memory) == GPUMEM_REFUSED_MEMORY);
static_assert(static_cast<int>(place::Refusal::free_floor) == GPUMEM_REFUSED_FREE_FLOOR);
static_assert(static_cast<int>(place::Refusal::smact) == GPUMEM_REFUSED_SMACT);

core::Status make_decision(const gpumem_request* wanted, const gpumem_server_gpu* gpus, std::size_t count,
                           const gpumem_placement* how, std::uint64_t* turn, gpumem_decision* result) {
  const Result<gpumem_request> from = taken(wanted, kFirstRequest, "gpumem_request");
  if (!from) return from.error();
  const Result<gpumem_placement> placement = placement_of(how);
  if (!placement) return placement.error();
  Result<gpumem_decision> room = taken(result, kFirstDecision, "gpumem_decision");
  if (!room) return room.error();
  const std::string id = text_or(from->id, "the job");
  const Result<place::Request> request = request_of(*from, id);
  if (!request) return request.error();
  if (room->gpus == nullptr || room->gpus_capacity < static_cast<std::uint64_t>(request->gpus)) {
    return refused("gpumem_decision.gpus has no room for " + std::to_string(request->gpus) + " GPUs");
  }
  const auto policy = place::make_policy(text_or(placement->policy, "magm"));
  if (!policy) return policy.error();
  const Result<place::Server> server = server_of(gpus, count);
  if (!server) return server.error();

  place::Conditions conditions;
  conditions.smact_cap = placement->smact_cap < 0.0 ? std::nullopt : std::optional(placement->smact_cap);
  conditions.free_floor = core::Bytes(placement->free_floor_bytes);
  conditions.idle_first = placement->idle_first != 0;
  std::size_t next = turn == nullptr ? 0 : static_cast<std::size_t>(*turn);
  const place::Decision decision = (*policy)->decide(*request, *server, conditions, next);
  const std::string words = place::explain(decision, *request, *server, conditions);

  std::copy(decision.gpus.begin(), decision.gpus.end(), room->gpus);
  room->gpus_count = decision.gpus.size();
  room->refusal = static_cast<gpumem_refusal>(decision.refusal);
  room->open = static_cast<std::int32_t>(decision.open);
  room->nearest = decision.nearest;
  write_text(words, room->explanation, room->explanation_size);
  give(*room, result);
  if (turn != nullptr) *turn = next;
  return core::Done{};
}

}  // namespace

}  // namespace gpumem::capi

using gpumem::capi::guarded;

extern "C" {

GPUMEM_API const char* gpumem_version(void) noexcept { return GPUMEM_VERSION_STRING; }

GPUMEM_API const char* gpumem_status_name(gpumem_status status) noexcept {
  switch (status) {
    case GPUMEM_OK: return "ok";
    case GPUMEM_INVALID_ARGUMENT: return "invalid_argument";
    case GPUMEM_UNKNOWN_GPU: return "unknown_gpu";
    case GPUMEM_UNREADABLE_FILE: return "unreadable_file";
    case GPUMEM_UNKNOWN_FORMAT: return "unknown_format";
    case GPUMEM_MALFORMED_INPUT: return "malformed_input";
    case GPUMEM_UNKNOWN_LAYER: return "unknown_layer";
    case GPUMEM_MISSING_INFORMATION: return "missing_information";
    case GPUMEM_OVERFLOW: return "overflow";
    case GPUMEM_DEADLINE_EXCEEDED: return "deadline_exceeded";
    case GPUMEM_OUT_OF_MEMORY: return "out_of_memory";
    case GPUMEM_INTERNAL_ERROR: return "internal_error";
    default: return "unknown";
  }
}

GPUMEM_API gpumem_status gpumem_summary_from_file(const char* path, const gpumem_read_options* options,
                                                  gpumem_summary** summary, char* message,
                                                  size_t message_size) noexcept {
  return guarded({message, message_size}, [&] { return gpumem::capi::read_file(path, options, summary); });
}

GPUMEM_API gpumem_status gpumem_summary_from_memory(const char* text, size_t length, const gpumem_read_options* options,
                                                    gpumem_summary** summary, char* message,
                                                    size_t message_size) noexcept {
  return guarded({message, message_size}, [&] { return gpumem::capi::read_memory(text, length, options, summary); });
}

GPUMEM_API void gpumem_summary_free(gpumem_summary* summary) noexcept { delete summary; }

GPUMEM_API gpumem_status gpumem_summary_describe(const gpumem_summary* summary, gpumem_summary_info* info,
                                                 char* message, size_t message_size) noexcept {
  return guarded({message, message_size}, [&] { return gpumem::capi::describe(summary, info); });
}

GPUMEM_API const char* gpumem_summary_warning(const gpumem_summary* summary, int64_t index) noexcept {
  if (summary == nullptr || index < 0) return nullptr;
  const auto warnings = summary->graph->warnings();
  const auto at = static_cast<std::uint64_t>(index);
  return at < warnings.size() ? warnings[static_cast<std::size_t>(at)].message.c_str() : nullptr;
}

GPUMEM_API gpumem_status gpumem_job_from_json(const char* json, size_t length, gpumem_job** job, char* message,
                                              size_t message_size) noexcept {
  return guarded({message, message_size}, [&] { return gpumem::capi::parse_job(json, length, job); });
}

GPUMEM_API gpumem_status gpumem_job_from_words(const char* const* names, const char* const* values, size_t count,
                                               gpumem_job** job, char* message, size_t message_size) noexcept {
  return guarded({message, message_size}, [&] { return gpumem::capi::make_job(names, values, count, job); });
}

GPUMEM_API const gpumem_job_option* gpumem_job_option_at(size_t index) noexcept {
  try {
    return gpumem::capi::option_at(index);
  } catch (...) {  // no memory for the list
    return nullptr;
  }
}

GPUMEM_API void gpumem_spell_options(const char* message, const char* before, const char* between, char* text,
                                     size_t size) noexcept {
  if (message == nullptr) return;
  const auto word = [](const char* given) { return given == nullptr ? std::string_view() : std::string_view(given); };
  try {
    gpumem::capi::write_text(gpumem::job::spelled(message, {word(before), word(between)}), text, size);
  } catch (...) {  // no memory for the text
    gpumem::capi::write_text(message, text, size);
  }
}

GPUMEM_API void gpumem_job_free(gpumem_job* job) noexcept { delete static_cast<gpumem::capi::OwnedJob*>(job); }

GPUMEM_API gpumem_status gpumem_estimate(const gpumem_summary* summary, const gpumem_job* job,
                                         gpumem_estimate_result* result, char* message, size_t message_size) noexcept {
  return guarded({message, message_size}, [&] { return gpumem::capi::make_estimate(summary, job, result); });
}

GPUMEM_API gpumem_status gpumem_fit(const gpumem_summary* summary, const gpumem_job* job, gpumem_fit_result* fit,
                                    gpumem_estimate_result* at_batch, gpumem_estimate_result* one_more, char* message,
                                    size_t message_size) noexcept {
  return guarded({message, message_size}, [&] {
    return gpumem::capi::make_fit(summary, job, gpumem::capi::kFindsBatch, fit, at_batch, one_more);
  });
}

GPUMEM_API gpumem_status gpumem_fit_sequence(const gpumem_summary* summary, const gpumem_job* job,
                                             gpumem_fit_result* fit, gpumem_estimate_result* at_length,
                                             gpumem_estimate_result* one_more, char* message,
                                             size_t message_size) noexcept {
  return guarded({message, message_size}, [&] {
    return gpumem::capi::make_fit(summary, job, gpumem::capi::kFindsSequence, fit, at_length, one_more);
  });
}

GPUMEM_API gpumem_status gpumem_plan(const gpumem_summary* summary, const gpumem_job* job,
                                     const gpumem_plan_question* question, gpumem_layout* layouts, size_t count,
                                     size_t* found, char* message, size_t message_size) noexcept {
  return guarded({message, message_size}, [&]() -> gpumem::core::Status {
    if (summary == nullptr) return gpumem::capi::null_pointer("summary");
    return gpumem::capi::make_plan(summary->model, job, question, layouts, count, found);
  });
}

GPUMEM_API gpumem_status gpumem_serve(const char* config, const char* gpu, const char* engine_version,
                                      const char* const* words, size_t count, gpumem_serving_result* result,
                                      char* message, size_t message_size) noexcept {
  return guarded({message, message_size},
                 [&] { return gpumem::capi::make_server(config, gpu, engine_version, words, count, result); });
}

GPUMEM_API gpumem_status gpumem_post_training(const char* model, const char* gpu, const char* const* options,
                                              size_t option_count, const char* const* words, size_t count,
                                              gpumem_post_training_result* result, char* message,
                                              size_t message_size) noexcept {
  return guarded({message, message_size}, [&] {
    return gpumem::capi::make_post_training(model, gpu, options, option_count, words, count, result);
  });
}

GPUMEM_API gpumem_status gpumem_place(const gpumem_request* request, const gpumem_server_gpu* gpus, size_t count,
                                      const gpumem_placement* placement, uint64_t* turn, gpumem_decision* decision,
                                      char* message, size_t message_size) noexcept {
  return guarded({message, message_size},
                 [&] { return gpumem::capi::make_decision(request, gpus, count, placement, turn, decision); });
}

}  // extern "C"
