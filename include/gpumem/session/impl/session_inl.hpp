#pragma once

#include "gpumem/session/session.hpp"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "gpumem/core/file.hpp"
#include "gpumem/job/job_options.hpp"
#include "gpumem/job/lengths.hpp"
#include "gpumem/posttrain/estimate_post_training.hpp"
#include "gpumem/posttrain/launch.hpp"
#include "gpumem/request/targets.hpp"
#include "gpumem/search/find_layouts.hpp"
#include "gpumem/serve/server_command.hpp"
#include "gpumem/serve/serving_questions.hpp"
#include "gpumem/session/estimate_memory.hpp"
#include "gpumem/summary/formats.hpp"
#include "gpumem/summary/model_folder.hpp"
#include "gpumem/utilisation/utilisation_estimators.hpp"

namespace gpumem::session {

namespace session_detail {

/// How much of each kind is kept. Trained models are the largest, a few MiB each; a profile has some KiB.
inline constexpr std::size_t kMostModels = 1024;
inline constexpr std::size_t kMostGpus = 256;
inline constexpr std::size_t kMostEstimators = 64;

/// The config.json of a model that somebody names: a file, a folder, or a name in the local HuggingFace cache.
GPUMEM_INLINE std::string config_path(const std::string& name) {
  std::error_code failure;
  std::string path = summary::path_of_model(name);
  if (std::filesystem::is_directory(path, failure)) path += "/config.json";
  return path;
}

/// What is in the config.json of a model that somebody names, at the path of config_path(); else its published sizes.
GPUMEM_INLINE core::Result<std::string> config_text(const std::string& name, const std::string& path) {
  core::Result<std::string> text =
      path == "-" ? core::read_file(path) : core::read_regular_file(path, summary::kLargestConfig);
  if (text) return text;
  if (auto published = summary::published_model(summary::named_model(name).name)) return std::move(published->config);
  return summary::unknown_name(name, text.error());
}

/// What an answer says where it was made of published sizes; else empty.
GPUMEM_INLINE std::string published_note(const std::string& name) {
  std::error_code failure;
  if (name == "-" || std::filesystem::exists(config_path(name), failure)) return {};
  const auto published = summary::published_model(summary::named_model(name).name);
  return published ? "published sizes of " + std::string(published->name) : std::string();
}

/// A config.json as Megatron's arguments.
GPUMEM_INLINE core::Result<std::shared_ptr<const model::ModelGraph>> megatron_model(const std::string& name,
                                                                                    std::int64_t expert_ranks) {
  const std::string path = config_path(name);
  const core::Result<std::string> text = config_text(name, path);
  if (!text) return text.error();
  const core::Result<std::string> arguments = posttrain::megatron_arguments_of(*text, expert_ranks);
  if (!arguments) return core::Error(arguments.error()).in_file(path);
  core::Result<model::ModelGraph> graph = parse_summary(*arguments, false, path);
  if (!graph) return graph.error();
  return std::make_shared<const model::ModelGraph>(*std::move(graph));
}

GPUMEM_INLINE bool is_path(const std::string& name) {
  return name.find('/') != std::string::npos || name.ends_with(".json");
}

}  // namespace session_detail

GPUMEM_INLINE core::Result<model::ModelGraph> read_summary(const std::string& path, bool lenient) {
  return summary::read_file(path, {&ops::vocabulary(), path, lenient});
}

GPUMEM_INLINE core::Result<model::ModelGraph> parse_summary(std::string_view text, bool lenient,
                                                            const std::string& file) {
  return summary::read(text, {&ops::vocabulary(), file, lenient});
}

GPUMEM_INLINE Model::Model(std::shared_ptr<const model::ModelGraph> graph, std::shared_ptr<analysis::Analyses> analyses)
    : graph_(std::move(graph)),
      analyses_(analyses == nullptr ? std::make_shared<analysis::Analyses>() : std::move(analyses)) {}

GPUMEM_INLINE Session::Session()
    : analyses_(std::make_shared<analysis::Analyses>()),
      models_(session_detail::kMostModels, true),  // many jobs may name one broken summary
      gpus_(session_detail::kMostGpus),
      estimators_(session_detail::kMostEstimators),
      utilisation_estimators_(session_detail::kMostEstimators),
      served_(session_detail::kMostModels, true) {}

GPUMEM_INLINE Session::~Session() = default;

GPUMEM_INLINE core::Result<std::shared_ptr<const Model>> Session::read(const std::string& path, bool lenient) {
  // What standard input gave is not there a second time.
  const std::uint64_t stamp = path == "-" ? 0 : core::stamp_of(summary::path_of_model(path));
  return models_.get((lenient ? "lenient:" : "strict:") + path, stamp, [&]() -> Kept<Model>::Shared {
    core::Result<model::ModelGraph> graph = read_summary(path, lenient);
    if (!graph) return graph.error();
    return model_of(std::make_shared<const model::ModelGraph>(*std::move(graph)));
  });
}

GPUMEM_INLINE std::shared_ptr<const Model> Session::model_of(std::shared_ptr<const model::ModelGraph> graph) const {
  return std::make_shared<const Model>(std::move(graph), analyses_);
}

GPUMEM_INLINE core::Result<std::shared_ptr<const device::GpuProfile>> Session::gpu(const std::string& name) {
  const std::uint64_t stamp = session_detail::is_path(name) ? core::stamp_of(name) : 0;
  return gpus_.get(name, stamp, [&]() -> Kept<device::GpuProfile>::Shared {
    core::Result<device::GpuProfile> profile = device::find_profile(name);
    if (!profile) return profile.error();
    return std::make_shared<const device::GpuProfile>(*std::move(profile));
  });
}

GPUMEM_INLINE core::Result<std::vector<std::shared_ptr<const estimate::Estimator>>> Session::estimators(
    const job::JobRequest& request) {
  const core::Result<device::AllocatorOptions> allocator = device::parse_allocator_options(request.alloc_conf);
  if (!allocator) return allocator.error();
  const std::uint64_t stamp = request.model.empty() ? 0 : core::stamp_of(request.model);
  std::vector<std::shared_ptr<const estimate::Estimator>> chosen;
  for (const estimate::EstimatorEntry& entry : estimate::estimators()) {
    if (request.estimator != "all" && request.estimator != entry.name) continue;
    std::string key(entry.name);
    key.append("\n").append(request.alloc_conf).append("\n").append(request.model);
    auto kept = estimators_.get(key, stamp, [&]() -> Kept<estimate::Estimator>::Shared {
      auto made = entry.create({*allocator, request.model});
      if (!made) return made.error();
      return std::shared_ptr<const estimate::Estimator>(*std::move(made));
    });
    if (!kept) return kept.error();
    chosen.push_back(*std::move(kept));
  }
  if (chosen.empty()) return estimate::make_estimator(request.estimator).error();
  return chosen;
}

GPUMEM_INLINE core::Result<std::shared_ptr<const estimate::Estimator>> Session::estimator(
    const job::JobRequest& request) {
  if (request.estimator == "all") return estimate::make_estimator(request.estimator).error();
  auto chosen = estimators(request);
  if (!chosen) return chosen.error();
  return std::move(chosen->front());
}

GPUMEM_INLINE core::Result<std::shared_ptr<const utilisation::UtilisationEstimator>> Session::utilisation_estimator(
    const std::string& name, const std::string& model) {
  const std::uint64_t stamp = model.empty() ? 0 : core::stamp_of(model);
  return utilisation_estimators_.get(
      name + "\n" + model, stamp, [&]() -> Kept<utilisation::UtilisationEstimator>::Shared {
        auto made = utilisation::make_utilisation_estimator(name, model);
        if (!made) return made.error();
        return std::shared_ptr<const utilisation::UtilisationEstimator>(*std::move(made));
      });
}

GPUMEM_INLINE core::Result<Asked> Session::ask(const job::JobRequest& request, std::shared_ptr<const Model> model) {
  auto profile = gpu(request.gpu);
  if (!profile) return profile.error();
  if (model == nullptr) {
    auto known = read(request.summary, request.lenient);
    if (!known) return known.error();
    model = *std::move(known);
  }
  core::Result<model::TrainingJob> job = job::job_from(request, model->graph());
  if (!job) return job.error();
  return Asked{std::move(model), *std::move(job), *std::move(profile)};
}

GPUMEM_INLINE core::Result<estimate::MemoryEstimate> Session::estimate(const job::JobRequest& request,
                                                                       std::shared_ptr<const Model> model) {
  const auto chosen = estimator(request);
  if (!chosen) return chosen.error();
  const core::Result<Asked> asked = ask(request, std::move(model));
  if (!asked) return asked.error();
  const auto analysis = asked->analysis();
  return (*chosen)->estimate(*analysis, *asked->gpu);
}

GPUMEM_INLINE core::Status leave_to_find(estimate::Grows grows, bool has_batch, job::JobRequest& request) {
  const bool contradicts = grows == estimate::Grows::batch
                               ? has_batch
                               : grows == estimate::Grows::sequence && request.training.sequence_length;
  if (contradicts) {
    return core::Error{
        core::ErrorCode::invalid_argument,
        "fit finds the longest sequence at a batch size, or the largest batch at a sequence length: leave out "
        "`seq_length` or `batch_size`, or say what to find: image, images or frames",
        {}};
  }
  if (grows == estimate::Grows::batch) job::take_any_batch(request);
  else if (!has_batch && request.training.batch_size < 1) request.training.batch_size = 1;
  return core::Done{};
}

GPUMEM_INLINE core::Result<estimate::Fit> Session::fit(const job::JobRequest& request,
                                                       std::shared_ptr<const Model> model) {
  job::JobRequest complete = request;
  job::take_any_batch(complete);
  return find_largest(complete, estimate::Grows::batch, std::move(model));
}

GPUMEM_INLINE core::Result<estimate::Fit> Session::fit_sequence(const job::JobRequest& request,
                                                                std::shared_ptr<const Model> model) {
  return find_largest(request, estimate::Grows::sequence, std::move(model));
}

GPUMEM_INLINE core::Result<estimate::Fit> Session::find_largest(const job::JobRequest& request, estimate::Grows grows,
                                                                std::shared_ptr<const Model> model) {
  const auto chosen = estimator(request);
  if (!chosen) return chosen.error();
  const core::Result<Asked> asked = ask(request, std::move(model));
  if (!asked) return asked.error();
  const auto analysis = asked->analysis();
  return estimate::find_largest(*analysis, grows, *asked->gpu, **chosen);
}

GPUMEM_INLINE core::Result<std::vector<estimate::GpuFit>> Session::gpus(const job::JobRequest& request,
                                                                        std::shared_ptr<const Model> model) {
  const auto chosen = estimator(request);
  if (!chosen) return chosen.error();
  const core::Result<Asked> asked = ask(request, std::move(model));
  if (!asked) return asked.error();
  const core::Result<std::vector<device::GpuProfile>>& known = device::known_profiles();
  if (!known) return known.error();
  const auto analysis = asked->analysis();
  auto fits = estimate::fit_each(*analysis, *known, **chosen);
  if (!fits || request.lengths.empty()) return fits;
  // The longest sample of a larger batch is longer than that of the batch which was asked for.
  for (estimate::GpuFit& fit : *fits) {
    job::JobRequest there = request;
    there.gpu = fit.gpu.name;
    const auto largest = this->fit(there, asked->model);
    if (!largest) return largest.error();
    fit.largest_batch = largest->batch_size;
    fit.batch_at_least = largest->at_least;
  }
  return fits;
}

GPUMEM_INLINE core::Result<estimate::Advice> Session::advise(const job::JobRequest& request,
                                                             std::shared_ptr<const Model> model) {
  const auto chosen = estimator(request);
  if (!chosen) return chosen.error();
  const core::Result<Asked> asked = ask(request, std::move(model));
  if (!asked) return asked.error();
  return estimate::advise(asked->job, *asked->gpu, **chosen);
}

GPUMEM_INLINE core::Result<estimate::Timeline> Session::timeline(const job::JobRequest& request,
                                                                 std::shared_ptr<const Model> model) {
  const core::Result<device::AllocatorOptions> allocator = device::parse_allocator_options(request.alloc_conf);
  if (!allocator) return allocator.error();
  const core::Result<Asked> asked = ask(request, std::move(model));
  if (!asked) return asked.error();
  const auto analysis = asked->analysis();
  return estimate::make_timeline(*analysis, *asked->gpu, {.allocator = *allocator});
}

GPUMEM_INLINE core::Result<search::LayoutPlan> Session::plan(const job::JobRequest& request,
                                                             const search::Question& question,
                                                             std::shared_ptr<const Model> model) {
  job::JobRequest complete = request;
  job::take_any_batch(complete);
  const core::Result<Asked> asked = ask(complete, std::move(model));
  if (!asked) return asked.error();
  return search::find_layouts(asked->job, *asked->gpu, question);
}

GPUMEM_INLINE core::Result<utilisation::UtilisationEstimate> Session::utilisation(const job::JobRequest& request,
                                                                                  const std::string& estimator,
                                                                                  std::shared_ptr<const Model> model) {
  const auto chosen = utilisation_estimator(estimator, request.model);
  if (!chosen) return chosen.error();
  const core::Result<Asked> asked = ask(request, std::move(model));
  if (!asked) return asked.error();
  const auto analysis = asked->analysis();
  return (*chosen)->estimate(*analysis, *asked->gpu);
}

GPUMEM_INLINE core::Result<request::GpuRequest> Session::request(const job::JobRequest& request,
                                                                 std::string_view target, const place::Margin& margin,
                                                                 const request::Site& site,
                                                                 std::shared_ptr<const Model> model) {
  const auto chosen = estimator(request);
  if (!chosen) return chosen.error();
  const core::Result<Asked> asked = ask(request, std::move(model));
  if (!asked) return asked.error();
  const auto analysis = asked->analysis();
  const auto takes = (*chosen)->estimate(*analysis, *asked->gpu);
  if (!takes) return takes.error();
  auto made = request::make_request(target, *takes, *asked->gpu, margin, site);
  if (!made) return std::move(made.error()).in_file(asked->model->graph()->file());
  return made;
}

GPUMEM_INLINE core::Result<std::shared_ptr<const serve::ServedModel>> Session::served(const std::string& config) {
  const std::string path = session_detail::config_path(config);
  return served_.get(path, core::stamp_of(path), [&]() -> Kept<serve::ServedModel>::Shared {
    const core::Result<std::string> text = session_detail::config_text(config, path);
    if (!text) return text.error();
    auto model = serve::read_served_model(*text);
    if (!model) return core::Error(model.error()).in_file(path);
    return std::make_shared<const serve::ServedModel>(*std::move(model));
  });
}

template <typename Question>
auto Session::ask_about_server(const serve::ServingRequest& request, const Question& question) {
  using Answer = decltype(question(serve::ServedModel(), request.job, device::GpuProfile()));
  const auto profile = gpu(request.gpu);
  if (!profile) return Answer(profile.error());
  const auto model = served(request.config);
  if (!model) return Answer(model.error());
  const auto speculation = serve::read_speculation(request.job.speculative_config);
  if (!speculation) return Answer(speculation.error());
  if (!*speculation || (*speculation)->model.empty()) return question(**model, request.job, **profile);
  const auto draft = served((*speculation)->model);
  if (!draft) return Answer(draft.error());
  serve::ServingJob job = request.job;
  job.draft = *draft;
  return question(**model, job, **profile);
}

GPUMEM_INLINE core::Result<serve::ServingEstimate> Session::serve(const serve::ServingRequest& request) {
  core::Result<serve::ServingEstimate> estimate = ask_about_server(request, serve::estimate_server);
  const std::string note = estimate ? session_detail::published_note(request.config) : std::string();
  if (!note.empty()) estimate->assumed.insert(estimate->assumed.begin(), note);
  return estimate;
}

GPUMEM_INLINE core::Result<serve::ServingLimits> Session::serving_limits(const serve::ServingRequest& request) {
  return ask_about_server(request, serve::find_serving_limits);
}

GPUMEM_INLINE core::Result<std::vector<serve::ServingChange>> Session::serving_advice(
    const serve::ServingRequest& request) {
  return ask_about_server(request, serve::advise_server);
}

GPUMEM_INLINE core::Result<request::GpuRequest> Session::serving_request(const serve::ServingRequest& request,
                                                                         std::string_view target,
                                                                         const place::Margin& margin,
                                                                         const request::Site& site) {
  const auto profile = gpu(request.gpu);
  if (!profile) return profile.error();
  const core::Result<serve::ServingEstimate> server = serve(request);
  if (!server) return server.error();
  if (!server->starts) {
    return core::Error{core::ErrorCode::missing_information, "the server does not start: " + server->reason, {}};
  }
  const core::Result<std::int64_t> gpus = serve::gpus_of(request.job);
  if (!gpus) return gpus.error();
  request::Site asked = site;
  asked.advisor = request::kServerAdvisor;
  return request::make_request(target, serve::memory_of(*server, *gpus), **profile, margin, asked);
}

GPUMEM_INLINE core::Result<std::vector<serve::ServingLayout>> Session::serving_plan(
    const serve::ServingRequest& request, std::int64_t gpus) {
  return ask_about_server(request, [gpus](const auto& model, const auto& job, const auto& gpu) {
    return serve::plan_server(model, job, gpu, gpus);
  });
}

GPUMEM_INLINE core::Status Session::settle_training(const posttrain::PostTrainingRequest& request,
                                                    job::JobRequest& training) {
  const bool megatron = posttrain::row_of(request.options.program).megatron;
  if (request.freezes_tower && !megatron && training.training.freeze.empty()) {
    const auto known = read(training.summary, training.lenient);
    if (!known) return known.error();
    training.training.freeze = posttrain::parts_of(*(*known)->graph(), posttrain::part_names({}, "", ","));
  }
  if (!request.buckets_by_width) return core::Done{};
  if (const auto sizes = served(training.summary)) posttrain::set_buckets(training.training.layout, (*sizes)->hidden);
  return core::Done{};
}

GPUMEM_INLINE core::Result<std::shared_ptr<const model::ModelGraph>> Session::further_model(
    const std::string& path, const posttrain::PostTrainingRequest& request) {
  const posttrain::PostTrainingOptions& to = request.options;
  if (posttrain::row_of(to.program).megatron) return session_detail::megatron_model(path, to.expert_tensor_parallel);
  const auto known = read(path, request.training.lenient);
  if (!known) return known.error();
  return (*known)->graph();
}

template <typename Question>
auto Session::ask_post_training(const posttrain::PostTrainingRequest& given, const Question& question) {
  using Answer = std::invoke_result_t<Question, const posttrain::PostTrainingJob&, const device::GpuProfile&,
                                      const device::AllocatorOptions&>;
  posttrain::PostTrainingRequest request = given;
  if (const core::Status complete = posttrain::check_complete(request); !complete) return Answer(complete.error());
  posttrain::take_speech(request, &summary::named_with_speech);
  const core::Result<device::AllocatorOptions> allocator = device::parse_allocator_options(request.training.alloc_conf);
  if (!allocator) return Answer(allocator.error());
  std::shared_ptr<const Model> policy;
  const bool megatron = posttrain::row_of(request.options.program).megatron;
  if (megatron) {
    auto converted = further_model(request.training.summary, request);
    if (!converted) return Answer(converted.error());
    policy = model_of(*std::move(converted));
  }
  job::JobRequest training = request.training;
  if (const core::Status settled = settle_training(request, training); !settled) return Answer(settled.error());
  const core::Result<Asked> asked = ask(training, std::move(policy));
  if (!asked) return Answer(asked.error());
  posttrain::PostTrainingJob job{.policy = asked->job, .options = request.options, .assumed = request.assumed};
  const auto pictures = request.text_prompt ? asked->analysis()->picture_tokens() : core::Result<std::int64_t>(0);
  if (pictures && *pictures > 0 && job.options.prompt_length) {
    job.options.prompt_length = core::bounded_sum({*job.options.prompt_length, *pictures});
    job.assumed.push_back({"lengths", "and the " + std::to_string(*pictures) + " tokens of a prompt's images"});
  }
  const std::pair<const std::string*, std::shared_ptr<const model::ModelGraph>*> others[] = {
      {&request.options.reference_model, &job.reference},
      {&request.options.critic_model, &job.critic},
      {&request.options.reward_model, &job.reward},
      {&request.options.teacher_model, &job.teacher}};
  for (const auto& [path, graph] : others) {
    if (path->empty()) continue;
    const auto made = further_model(*path, request);
    const bool named = std::count(request.named.begin(), request.named.end(), *path) > 0;
    std::error_code none;
    if (!made && (!named || std::filesystem::exists(*path, none))) return Answer(made.error());
    *graph = made ? *made : asked->job.graph;
    const std::string missing = core::quoted(core::shortened(*path, 80)) + " was not found";
    if (!made) job.assumed.push_back({"model", missing + "; a model like the policy is taken"});
  }
  if (megatron) {  // a config of Megatron's own arguments has no tower
    const auto whole = read(request.training.summary, request.training.lenient);
    if (whole) job.tower_parameters = posttrain::tower_parameters(*(*whole)->graph());
  }
  if (posttrain::row_of(request.options.algorithm).generates) {
    const auto sizes = served(request.training.summary);
    if (!sizes && request.options.rollout != posttrain::Rollout::elsewhere) return Answer(sizes.error());
    if (sizes) job.served = *sizes;
  }
  return question(job, *asked->gpu, *allocator);
}

GPUMEM_INLINE core::Result<posttrain::PostTrainingEstimate> Session::post_training(
    const posttrain::PostTrainingRequest& request) {
  return ask_post_training(request, &posttrain::estimate_post_training);
}

GPUMEM_INLINE core::Result<posttrain::PostTrainingLimits> Session::post_training_limits(
    const posttrain::PostTrainingRequest& request) {
  return ask_post_training(posttrain::with_a_batch(request), &posttrain::find_post_training_limits);
}

GPUMEM_INLINE core::Result<std::vector<posttrain::PostTrainingChange>> Session::post_training_advice(
    const posttrain::PostTrainingRequest& request) {
  return ask_post_training(request, &posttrain::advise_post_training);
}

GPUMEM_INLINE core::Result<std::vector<posttrain::PostTrainingLayout>> Session::post_training_layouts(
    const posttrain::PostTrainingRequest& request, std::int64_t gpus) {
  return ask_post_training(request, [gpus](const auto& job, const auto& gpu, const auto& options) {
    return posttrain::find_post_training_layouts(job, gpu, gpus, options);
  });
}

GPUMEM_INLINE core::Result<request::GpuRequest> Session::post_training_request(
    const posttrain::PostTrainingRequest& request, std::string_view target, const place::Margin& margin,
    const request::Site& site) {
  const auto profile = gpu(request.training.gpu);
  if (!profile) return profile.error();
  const core::Result<posttrain::PostTrainingEstimate> takes = post_training(request);
  if (!takes) return takes.error();
  request::Site asked = site;
  asked.advisor = request::kPostTrainingAdvisor;
  return request::make_request(target, takes->memory, **profile, margin, asked);
}

GPUMEM_INLINE Session& process_session() {
  static Session session;
  return session;
}

GPUMEM_INLINE core::Result<estimate::MemoryEstimate> estimate_memory(const std::string& model,
                                                                     const std::vector<OptionText>& options) {
  job::JobRequest request;
  request.summary = model;
  for (const auto& [name, value] : options) {
    const job::JobOption* option = job::find_option(name);
    const std::string missing = "a job has no option " + core::quoted(core::shortened(name, 60));
    if (option == nullptr) return core::Error{core::ErrorCode::invalid_argument, missing, {}};
    if (const core::Status set = job::set_option_text(*option, request, value); !set) return set.error();
  }
  return process_session().estimate(request);
}

}  // namespace gpumem::session
