#pragma once

#include "gpumem/estimate/advise.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <utility>

#include "gpumem/model/optimizers.hpp"
#include "gpumem/model/step_recording.hpp"

namespace gpumem::estimate {

namespace advise_detail {

using Forms = std::vector<ChangedJob>;
using model::Precision;
using model::TrainingJob;

/// The job with one field set to another value.
template <typename Field, typename Value>
ChangedJob with(TrainingJob job, Field TrainingJob::*field, Value value, std::string_view option, std::string word) {
  job.*field = value;
  return {std::move(job), {{option, std::move(word)}}};
}

/// The optimizer's multi-tensor form makes temporaries; its fused form does the same work in one kernel.
GPUMEM_INLINE Forms fused(const TrainingJob& job, const device::GpuProfile&) {
  if (!model::row_of(job.optimizer).has_fused || model::updates_in_one_kernel(job)) return {};
  return {with(job, &TrainingJob::fused, true, "fused", "true")};
}

GPUMEM_INLINE Forms gradients_to_none(const TrainingJob& job, const device::GpuProfile&) {
  if (job.zero_grad != model::ZeroGrad::before_backward) return {};
  return {with(job, &TrainingJob::zero_grad, model::ZeroGrad::step_start, "zero_grad", "step-start")};
}

GPUMEM_INLINE Forms one_tensor_at_a_time(const TrainingJob& job, const device::GpuProfile&) {
  if (!job.foreach || job.fused || model::updates_in_one_kernel(job)) return {};
  return {with(job, &TrainingJob::foreach, false, "foreach", "false")};
}

GPUMEM_INLINE Forms no_prefetch(const TrainingJob& job, const device::GpuProfile&) {
  if (!job.prefetch) return {};
  return {with(job, &TrainingJob::prefetch, false, "prefetch", "false")};
}

/// For a model that reads tokens; without a language-model head the estimate says that this does not apply.
GPUMEM_INLINE Forms fused_loss(const TrainingJob& job, const device::GpuProfile&) {
  if (!job.graph->reads_tokens() || job.loss != model::Loss::cross_entropy || job.loss_form != model::LossForm{})
    return {};
  return {with(job, &TrainingJob::loss_form, model::LossForm{model::LossForms::fused}, "loss", "fused")};
}

/// bitsandbytes' block-wise states.
GPUMEM_INLINE Forms eight_bit_states(const TrainingJob& job, const device::GpuProfile&) {
  using model::Optimizer;
  if (job.optimizer != Optimizer::adam && job.optimizer != Optimizer::adamw) return {};
  const Optimizer small = job.optimizer == Optimizer::adam ? Optimizer::adam_8bit : Optimizer::adamw_8bit;
  return {with(job, &TrainingJob::optimizer, small, "optimizer", std::string(model::row_of(small).name))};
}

/// The same samples a step in more passes: half the batch, a quarter, and so on while the batch can be parted evenly.
GPUMEM_INLINE Forms more_passes(const TrainingJob& job, const device::GpuProfile&) {
  Forms forms;
  TrainingJob parted = job;
  while (parted.batch_size > 1 && parted.batch_size % 2 == 0) {
    parted.batch_size /= 2;
    parted.gradient_accumulation *= 2;
    forms.push_back({parted,
                     {{"batch_size", std::to_string(parted.batch_size)},
                      {"accumulate", std::to_string(parted.gradient_accumulation)}}});
  }
  return forms;
}

GPUMEM_INLINE Forms checkpointing(const TrainingJob& job, const device::GpuProfile&) {
  if (job.activation_checkpointing) return {};
  return {with(job, &TrainingJob::activation_checkpointing, true, "checkpointing", "true")};
}

/// Tensor cores have bfloat16 from compute capability 8.0 on.
GPUMEM_INLINE bool has_bfloat16(const device::GpuProfile& gpu) {
  int major = 0;
  std::from_chars(gpu.compute_capability.data(), gpu.compute_capability.data() + gpu.compute_capability.size(), major);
  return major >= 8;
}

GPUMEM_INLINE Forms autocast(const TrainingJob& job, const device::GpuProfile& gpu) {
  if (!model::is_float32(job.precision)) return {};
  const bool wide = has_bfloat16(gpu);
  return {with(job, &TrainingJob::precision, wide ? Precision::amp_bf16 : Precision::amp_fp16, "precision",
               wide ? "amp-bf16" : "amp-fp16")};
}

GPUMEM_INLINE Forms all_in_bfloat16(const TrainingJob& job, const device::GpuProfile& gpu) {
  if (job.precision == Precision::bf16 || !has_bfloat16(gpu)) return {};
  return {with(job, &TrainingJob::precision, Precision::bf16, "precision", "bf16")};
}

/// The job with other words in its `parts`, joined by '+': what `changed` makes of each; "" leaves it out.
template <typename Changed>
std::string parts_with(const TrainingJob& job, Changed changed) {
  std::string made;
  for (std::size_t begin = 0; begin <= job.parts.size() && !job.parts.empty();) {
    const std::size_t end = std::min(job.parts.find('+', begin), job.parts.size());
    const std::string word = changed(job.parts.substr(begin, end - begin));
    if (!word.empty()) made += (made.empty() ? "" : "+") + word;
    begin = end + 1;
  }
  return made;
}

/// The autoencoder of a diffusers folder makes latents in each step, and not so yet.
GPUMEM_INLINE Forms encoding(const TrainingJob& job, std::string_view how) {
  const std::string parts = parts_with(job, [&](const std::string& word) {
    const bool encodes = word.starts_with("all") || word.starts_with("vae");
    return encodes && word.find(how) == std::string::npos ? word + std::string(how) : word;
  });
  if (parts == job.parts) return {};
  return {with(job, &TrainingJob::parts, parts, "parts", parts)};
}

GPUMEM_INLINE Forms one_sample_encoded(const TrainingJob& job, const device::GpuProfile&) {
  return job.batch_size > 1 ? encoding(job, ":sliced") : Forms();
}

GPUMEM_INLINE Forms tiles_encoded(const TrainingJob& job, const device::GpuProfile&) { return encoding(job, ":tiled"); }

/// The prompts' embeddings are made before training, and the text encoders are not needed then.
GPUMEM_INLINE Forms text_away(const TrainingJob& job, const device::GpuProfile&) {
  const std::string parts = parts_with(job, [](const std::string& word) {
    if (word.starts_with("all")) return "vae" + word.substr(3);
    return word.starts_with("text_encoder") ? std::string() : word;
  });
  if (parts == job.parts || parts.empty()) return {};
  return {with(job, &TrainingJob::parts, parts, "parts", parts)};
}

/// Latents and the prompts' embeddings are made before training, by parts of the pipeline that are not needed then.
GPUMEM_INLINE Forms parts_away(const TrainingJob& job, const device::GpuProfile&) {
  if (job.parts.empty() || job.parts == "none") return {};
  return {with(job, &TrainingJob::parts, std::string("none"), "parts", "none")};
}

/// Whether the model makes images or videos: its config is asked again for each size of them.
GPUMEM_INLINE bool makes_images(const TrainingJob& job) {
  return !job.graph->reads_tokens() && !job.graph->config().empty();
}

/// Of three quarters of each side, and of half.
GPUMEM_INLINE Forms smaller_images(const TrainingJob& job, const device::GpuProfile&) {
  constexpr std::int64_t kStep = 64;
  const std::span<const std::int64_t> usual = job.graph->usual_image();
  const std::vector<std::int64_t> image =
      job.image.empty() ? std::vector<std::int64_t>(usual.begin(), usual.end()) : job.image;
  if (!makes_images(job) || image.size() != 2) return {};
  Forms forms;
  for (const std::int64_t quarters : {3, 2}) {
    TrainingJob smaller = job;
    smaller.image = image;
    for (std::int64_t& side : smaller.image) side = std::max(side * quarters / 4 / kStep, std::int64_t{1}) * kStep;
    if (smaller.image == image) continue;
    const std::string word = std::to_string(smaller.image[0]) + "x" + std::to_string(smaller.image[1]);
    forms.push_back({std::move(smaller), {{"image", word}}});
  }
  return forms;
}

/// A usual rank.
inline constexpr std::int64_t kRank = 16;

GPUMEM_INLINE Forms adapters(const TrainingJob& job, const device::GpuProfile&) {
  if ((!job.graph->reads_tokens() && !makes_images(job)) || job.has_adapters()) return {};
  return {with(job, &TrainingJob::lora, kRank, "lora", std::to_string(kRank))};
}

/// The change, and adapters where the job has none.
GPUMEM_INLINE ChangedJob on_adapters(ChangedJob form) {
  if (form.job.has_adapters()) return form;
  form.job.lora = kRank;
  form.settings.push_back({"lora", std::to_string(kRank)});
  return form;
}

GPUMEM_INLINE Forms adapters_on_four_bits(const TrainingJob& job, const device::GpuProfile&) {
  if (!job.graph->reads_tokens() || job.quantize != model::Quantization::none) return {};
  return {on_adapters(with(job, &TrainingJob::quantize, model::Quantization::nf4, "quantize", "nf4"))};
}

/// Image models have no usual way to hold their weights in four bits; SDNQ's eight are SimpleTuner's.
GPUMEM_INLINE Forms adapters_on_eight_bits(const TrainingJob& job, const device::GpuProfile&) {
  if (!makes_images(job) || job.quantize != model::Quantization::none) return {};
  return {on_adapters(with(job, &TrainingJob::quantize, model::Quantization::int8_sdnq, "quantize", "int8-sdnq"))};
}

/// RamTorch for an image model that is frozen already: what is learned stays as it is.
GPUMEM_INLINE Forms host_weights(const TrainingJob& job, const device::GpuProfile&) {
  if (!makes_images(job) || job.offload != model::Offload::none || !job.has_adapters()) return {};
  return {with(job, &TrainingJob::offload, model::Offload::ramtorch, "offload", "ramtorch")};
}

GPUMEM_INLINE Forms adapters_on_host_weights(const TrainingJob& job, const device::GpuProfile&) {
  if (!makes_images(job) || job.offload != model::Offload::none || job.has_adapters()) return {};
  return {on_adapters(with(job, &TrainingJob::offload, model::Offload::ramtorch, "offload", "ramtorch"))};
}

inline constexpr std::array<Change, 20> kChanges = {{
    {"nothing: the same result in one kernel", fused, true},
    {"nothing: last step's gradients are freed before the forward pass", gradients_to_none},
    {"a library: Liger's head and loss in one, so that logits are never whole", fused_loss},
    {"time: the autoencoder makes latents of one sample after the other", one_sample_encoded},
    {"time before training: embeddings of prompts are made then", text_away},
    {"time before training: latents and embeddings of prompts are made then", parts_away},
    {"time: the step waits for its batch", no_prefetch},
    {"time: an optimizer step of one tensor at a time", one_tensor_at_a_time, true},
    {"time: the GPU is less busy in smaller passes; batch norms, if any, see fewer samples", more_passes},
    {"precision, and time: the autoencoder makes latents of tiles, which are blended where they meet", tiles_encoded},
    {"precision: matrix products and convolutions run in half precision; mostly faster", autocast},
    {"time: every forward pass a second time, about a third more", checkpointing},
    {"time: frozen weights cross for each product (RamTorch)", host_weights},
    {"a library, and precision: 8-bit optimizer states (bitsandbytes)", eight_bit_states, true},
    {"precision: weights and optimizer states in bfloat16, which lose small updates", all_in_bfloat16},
    {"what is learned: smaller images", smaller_images},
    {"what is learned: only adapters (LoRA, by PEFT); the model is frozen", adapters},
    {"what is learned, and time: adapters, and frozen weights that cross for each product (RamTorch)",
     adapters_on_host_weights},
    {"what is learned, and precision: adapters on a 4-bit model (QLoRA, by bitsandbytes)", adapters_on_four_bits},
    {"what is learned, and precision: adapters on an 8-bit image model (by SDNQ)", adapters_on_eight_bits},
}};

/// Whether the job learns what it learns without the change, but for rounding: such changes cost nothing or time.
GPUMEM_INLINE bool keeps_result(const Change& change) {
  constexpr std::array kLossy = {&tiles_encoded,           &autocast, &eight_bit_states,      &all_in_bfloat16,
                                 &smaller_images,          &adapters, &adapters_on_four_bits, &adapters_on_eight_bits,
                                 &adapters_on_host_weights};
  return std::find(kLossy.begin(), kLossy.end(), change.forms) == kLossy.end();
}

/// Whether the change adds adapters and something besides, which must be worth it.
GPUMEM_INLINE bool adds_to_adapters(const Change& change) {
  return change.forms == &adapters_on_host_weights || change.forms == &adapters_on_eight_bits ||
         change.forms == &adapters_on_four_bits;
}

/// A job that fits is better than a tight one, and that better than one that does not fit; one that takes less better
/// than one that takes more, and any answer better than none.
GPUMEM_INLINE bool better(const core::Result<MemoryEstimate>& one, const core::Result<MemoryEstimate>& other) {
  if (!one || !other) return one.has_value() && !other.has_value();
  if (one->verdict != other->verdict) return one->verdict < other->verdict;
  return one->expected < other->expected;
}

/// What a recording says about a change that its step does not have; nothing: it can be changed so.
GPUMEM_INLINE std::optional<core::Error> fixed_by_recording(const Change& change, const ChangedJob& form) {
  const TrainingJob& job = form.job;
  const bool known =
      job.replaces_optimizer || model::value_of(model::kOptimizers, job.graph->recording()->optimizer).has_value();
  if (change.after_recording && known) return std::nullopt;
  std::string message = change.after_recording ? std::string(model::kUnknownRecordedOptimizer)
                                               : model::fixed_by_recording(form.settings.back().option);
  return core::Error{core::ErrorCode::invalid_argument, std::move(message), {job.graph->file(), 0, {}}};
}

/// Whether the time was up, which says nothing of the change.
GPUMEM_INLINE bool is_late(const core::Result<MemoryEstimate>& estimate) {
  return !estimate && estimate.error().code == core::ErrorCode::deadline_exceeded;
}

/// The mildest form that fits, else the one that takes least. `forms` holds one or more. The analysis keeps the stages
/// that the forms share, and is left at the last one that was tried.
GPUMEM_INLINE std::pair<ChangedJob, core::Result<MemoryEstimate>> best_of(const Change& change, Forms forms,
                                                                          analysis::Analysis& analysis,
                                                                          const device::GpuProfile& gpu,
                                                                          const Estimator& estimator) {
  if (forms.front().job.graph->recording() != nullptr) {
    if (auto fixed = fixed_by_recording(change, forms.front())) return {forms.front(), *std::move(fixed)};
    for (ChangedJob& form : forms) form.job.replaces_optimizer = true;
  }
  std::optional<core::Result<MemoryEstimate>> best;
  std::size_t chosen = 0;
  for (std::size_t at = 0; at < forms.size(); ++at) {
    analysis.set_job(forms[at].job);
    core::Result<MemoryEstimate> estimate = estimator.estimate(analysis, gpu);
    if (is_late(estimate)) return {std::move(forms[at]), std::move(estimate)};
    const bool first = !best.has_value();
    if (!first && !better(estimate, *best)) continue;
    best = std::move(estimate);
    chosen = at;
    if (best->has_value() && is_enough(**best)) break;
  }
  return {std::move(forms[chosen]), *std::move(best)};
}

/// A setting of an option takes the place of an earlier one.
GPUMEM_INLINE void add_settings(std::vector<Setting>& settings, std::vector<Setting> more) {
  for (Setting& setting : more) {
    const auto same = [&](const Setting& known) { return known.option == setting.option; };
    const auto known = std::find_if(settings.begin(), settings.end(), same);
    if (known == settings.end()) {
      settings.push_back(std::move(setting));
    } else {
      known->value = std::move(setting.value);
    }
  }
}

/// Which changes may be added up.
enum class Among : std::uint8_t { all, with_the_same_result };

/// What several changes do together; nothing: they are not enough. Errors: deadline_exceeded.
using Together = core::Result<std::optional<ChangeEffect>>;

/// Two that keep the result are tried among those that do, and not again among all.
GPUMEM_INLINE bool is_pair_of(Among among, const Change& cheaper, const Change& dearer) {
  const bool same = keeps_result(cheaper) && keeps_result(dearer);
  return same == (among == Among::with_the_same_result);
}

/// The two cheapest that are enough together, as a fused optimizer is once activations are no longer the peak. The
/// cheaper change takes one form, the mildest.
GPUMEM_INLINE Together two_of(Among among, const TrainingJob& job, analysis::Analysis& analysis,
                              const device::GpuProfile& gpu, const Estimator& estimator) {
  if (job.graph->recording() != nullptr) return std::optional<ChangeEffect>();
  return cheapest_pair(kChanges, [&](const Change& cheaper, const Change& dearer) -> Together {
    const Forms before = is_pair_of(among, cheaper, dearer) ? cheaper.forms(job, gpu) : Forms();
    Forms forms = before.empty() ? Forms() : dearer.forms(before.front().job, gpu);
    if (forms.empty()) return std::optional<ChangeEffect>();
    auto [changed, estimate] = best_of(dearer, std::move(forms), analysis, gpu, estimator);
    if (is_late(estimate)) return estimate.error();
    if (!estimate || !is_enough(*estimate)) return std::optional<ChangeEffect>();
    std::vector<Setting> settings = before.front().settings;
    add_settings(settings, std::move(changed.settings));
    std::string costs = std::string(cheaper.cost) + "; " + std::string(dearer.cost);
    return std::optional(ChangeEffect{std::move(costs), among == Among::with_the_same_result, std::move(settings),
                                      *std::move(estimate)});
  });
}

/// The cheapest changes one after another, until the job fits. One that helps nothing is left out.
GPUMEM_INLINE Together added_up(Among among, TrainingJob job, MemoryEstimate takes, analysis::Analysis& analysis,
                                const device::GpuProfile& gpu, const Estimator& estimator) {
  std::vector<Setting> settings;
  bool same_result = true;
  for (const Change& change : kChanges) {
    if (among == Among::with_the_same_result && !keeps_result(change)) continue;
    Forms forms = change.forms(job, gpu);
    if (forms.empty()) continue;
    auto [changed, estimate] = best_of(change, std::move(forms), analysis, gpu, estimator);
    if (is_late(estimate)) return estimate.error();
    if (!estimate || estimate->expected >= takes.expected) continue;
    add_settings(settings, std::move(changed.settings));
    same_result = same_result && keeps_result(change);
    job = std::move(changed.job);
    takes = *std::move(estimate);
    if (!is_enough(takes)) continue;
    return std::optional(ChangeEffect{"all of these together", same_result, std::move(settings), std::move(takes)});
  }
  return std::optional<ChangeEffect>();
}

/// Two changes, else more of them.
GPUMEM_INLINE Together enough_of(Among among, const TrainingJob& job, const MemoryEstimate& now,
                                 analysis::Analysis& analysis, const device::GpuProfile& gpu,
                                 const Estimator& estimator) {
  Together two = two_of(among, job, analysis, gpu, estimator);
  if (!two || *two) return two;
  return added_up(among, job, now, analysis, gpu, estimator);
}

}  // namespace advise_detail

GPUMEM_INLINE std::span<const Change> changes() { return advise_detail::kChanges; }

GPUMEM_INLINE core::Result<Advice> advise(const model::TrainingJob& job, const device::GpuProfile& gpu,
                                          const Estimator& estimator) {
  analysis::Analysis analysis(job);
  core::Result<MemoryEstimate> now = estimator.estimate(analysis, gpu);
  if (!now) return now.error();
  Advice advice{*std::move(now), {}, std::nullopt};
  bool fits = is_enough(advice.now);
  bool fits_unchanged = fits;  // with the same result
  std::optional<core::Bytes> with_adapters;
  for (const Change& change : advise_detail::kChanges) {
    std::vector<ChangedJob> forms = change.forms(job, gpu);
    if (forms.empty()) continue;
    auto [changed, estimate] = advise_detail::best_of(change, std::move(forms), analysis, gpu, estimator);
    if (advise_detail::is_late(estimate)) return estimate.error();
    if (!estimate && estimate.error().code == core::ErrorCode::missing_information) continue;
    // A change that takes more, or no less than a part of it, is no advice: weights that cross to the GPU for each
    // product take more than they save where their layers keep their inputs for it.
    if (estimate && estimate->expected > advice.now.expected) continue;
    const bool adds = advise_detail::adds_to_adapters(change);
    if (estimate && adds && with_adapters && estimate->expected >= *with_adapters) continue;
    if (estimate && change.forms == &advise_detail::adapters) with_adapters = estimate->expected;
    const bool enough = estimate && is_enough(*estimate);
    fits = fits || enough;
    const bool same_result = advise_detail::keeps_result(change);
    fits_unchanged = fits_unchanged || (enough && same_result);
    advice.single.push_back({std::string(change.cost), same_result, std::move(changed.settings), std::move(estimate)});
  }
  using advise_detail::Among;
  for (const Among among : {Among::with_the_same_result, Among::all}) {
    if (advice.together || (among == Among::all ? fits : fits_unchanged)) break;
    auto together = advise_detail::enough_of(among, job, advice.now, analysis, gpu, estimator);
    if (!together) return together.error();
    advice.together = *std::move(together);
  }
  return advice;
}

}  // namespace gpumem::estimate
