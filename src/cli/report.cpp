#include "report.hpp"
#include "figures.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "gpumem/job/job_options.hpp"
#include "gpumem/model/step_recording.hpp"

namespace gpumem::cli {

namespace {

using Json = nlohmann::ordered_json;

Json optional_bytes(const std::optional<Bytes>& bytes) { return bytes ? Json(bytes->count()) : Json(nullptr); }

/// To a millionth: beyond that it is the rounding of float32.
double rounded_share(double share) {
  constexpr double kMillion = 1e6;
  return std::round(share * kMillion) / kMillion;
}

Json peak_json(const std::optional<estimate::PeakLayer>& peak) {
  if (!peak) return nullptr;
  return {{"layer", peak->path.empty() ? Json(nullptr) : Json(peak->path)},
          {"phase", peak->phase},
          {"step", peak->step},
          {"text", peak->text}};
}

Json to_json(const Answer& answer) {
  if (!answer.estimate) return {{"estimator", answer.estimator}, {"error", cli::to_json(answer.estimate.error())}};
  Json json = {{"estimator", answer.estimator}};
  json.update(cli::to_json(*answer.estimate));
  json["seconds"] = answer.seconds;
  return json;
}

Json summary_json(const ModelGraph& graph) {
  Json json = {{"file", graph.file()},
               {"format", graph.format()},
               {"layers", graph.layers().size()},
               {"parameters", graph.parameters()},
               {"trainable_parameters", graph.trainable_parameters()},
               {"batch_size", graph.printed_batch_size() ? Json(*graph.printed_batch_size()) : Json(nullptr)},
               {"warnings", Json::array()}};
  for (const model::Warning& warning : graph.warnings()) {
    json["warnings"].push_back({{"line", warning.place.line}, {"message", warning.message}});
  }
  return json;
}

JobRequest asked_of(const EstimatedJob& estimated_job) {
  return {.training = estimated_job.job, .alloc_conf = estimated_job.alloc_conf};
}

/// How the job is trained, every option of it.
Json training_json(const EstimatedJob& estimated_job) {
  const JobRequest asked = asked_of(estimated_job);
  Json json = Json::object();
  for (const job::JobOption& option : job::job_options()) {
    if (option.trains) json[std::string(option.name)] = job_json::to_json(option.place.get(asked));
  }
  json["alloc_conf"] = estimated_job.alloc_conf;
  return json;
}

/// What differs from a job without options, but for what is looked for.
std::string unusual(const EstimatedJob& estimated_job, std::optional<Grows> looked_for) {
  const JobRequest asked = asked_of(estimated_job);
  std::string text;
  for (const job::JobOption& option : job::job_options()) {
    if (looked_for && option.name == option_of(*looked_for)) continue;
    const std::string remark = job::remark_on(option, asked);
    if (!remark.empty()) text += ", " + remark;
  }
  return text;
}

/// "once", "4 times".
std::string times(std::int64_t count) { return count == 1 ? "once" : core::with_separators(count) + " times"; }

/// The words in front of a line below a breakdown, as wide as the names of its parts.
constexpr std::size_t kLabel = 12;
std::string label(const char* words) { return padded(words, kLabel + 2, false); }

/// A column that shows estimates against the capacity of the GPU.
Column of_gpu(const GpuProfile& gpu) {
  return {.title = "of " + core::to_string(gpu.capacity()), .gauge = true, .below = true};
}

/// One line an estimator. An estimator without a published range shows none.
std::string figures(const EstimatedJob& estimated_job, const Terminal& terminal) {
  const GpuProfile& gpu = *estimated_job.gpu;
  std::vector<Column> columns = {{.title = "estimator"}};
  for (const char* title : {"expected", "lower", "upper", "allocated", "reserved", "device"}) {
    columns.push_back({.title = title, .right = true});
  }
  columns.push_back({.title = "fits"});
  columns.push_back(of_gpu(gpu));
  Table table(std::move(columns));
  bool ranged = false;
  for (const Answer& answer : estimated_job.answers) {
    if (!answer.estimate) {
      table.add({answer.estimator, said(answer.estimate.error())});
      continue;
    }
    const MemoryEstimate& estimate = *answer.estimate;
    ranged = ranged || estimate.ranged;
    table.add({answer.estimator, estimate.expected, estimate.ranged ? std::optional(estimate.lower) : std::nullopt,
               estimate.ranged ? std::optional(estimate.upper) : std::nullopt, estimate.allocated, estimate.reserved,
               estimate.device, fits_cell(estimate.verdict)},
              gauge_of(estimate, gpu));
  }
  return table.text(terminal) + (terminal.shown && ranged ? gauge_legend(terminal) : "");
}

/// A classifier's bins, those that are at all likely.
std::string bins(const Answer& answer, const Terminal& terminal) {
  constexpr double kLeast = 0.001;
  const MemoryEstimate& estimate = *answer.estimate;
  Table table({{.title = "from", .right = true},
               {.title = "to", .right = true},
               {.title = "probability", .right = true},
               {.gauge = true}},
              2);
  for (const estimate::Bin& bin : estimate.bins) {
    if (bin.probability < kLeast) continue;
    table.add({bin.lower, bin.upper, percent(bin.probability, "%.1f %%")}, bar(bin.probability));
  }
  return "\n" + std::string(answer.estimator) + " (model " + estimate.provenance.weights + ") says\n" +
         table.text(terminal);
}

std::string out_of_domain(const Answer& answer) {
  const std::vector<std::string>& outside = answer.estimate->out_of_domain;
  if (outside.empty()) return {};
  const bool learned = !answer.estimate->provenance.weights.empty();
  std::string text = "  do not trust this: the job is unlike the jobs that " +
                     std::string(learned ? "the model was trained on" : "the formula was made for") + " in ";
  for (const std::string& name : outside) text += (&name == &outside.front() ? "" : ", ") + name;
  return text + "\n";
}

std::string breakdown(const Answer& answer, const GpuProfile& gpu, const Terminal& terminal) {
  const MemoryEstimate& estimate = *answer.estimate;
  Table table({{.at_least = kLabel}, {.right = true}, {.right = true}, {.gauge = true}}, 2);
  for (const auto& part : estimate.breakdown.parts()) {
    if (part.bytes.count() == 0) continue;
    const double share = share_of(part.bytes, estimate.expected);
    table.add({part.name, part.bytes, percent(share, "%.1f %%")}, bar(share));
  }
  std::string text = "\n" + std::string(answer.estimator) + " is made of\n" + table.text(terminal);
  if (estimate.peak_layer) text += "  " + label("peak") + said(estimate.peak_layer->text) + "\n";
  text += why_tight(estimate, gpu, "  ");
  if (!estimate.leaves_out.empty()) text += "  lower bound: without " + estimate.leaves_out + "\n";
  if (!estimate.coverage.edges.empty() && !estimate.coverage.edges_inferred) {
    text += "  " + label("edges") + estimate.coverage.edges + "\n";
  }
  return text + assumed_text(estimate);
}

std::string notes(const EstimatedJob& estimated_job) {
  std::string text;
  const ModelGraph& graph = *estimated_job.graph;
  if (graph.unknown_layers() > 0) {
    text += "\n" + core::with_separators(graph.unknown_layers()) + " of " +
            core::with_separators(static_cast<std::int64_t>(graph.layers().size())) +
            " layers have unknown classes: the estimates are lower bounds.\n";
  }
  if (graph.edges_inferred() && !graph.shapes_printed()) {
    text += "\nThe summary prints neither shapes nor edges: both were inferred.\n";
  }
  return text;
}

Tone tone_of(estimate::Verdict verdict) {
  if (verdict == estimate::Verdict::fits) return Tone::good;
  return verdict == estimate::Verdict::does_not_fit ? Tone::bad : Tone::doubtful;
}

Json optional_estimate(const std::optional<MemoryEstimate>& estimate) {
  return estimate ? cli::to_json(*estimate) : Json(nullptr);
}

std::string need_of(const std::optional<MemoryEstimate>& estimate) {
  return estimate ? core::to_string(estimate->expected) : "more than 64 bits can count";
}

/// How answers call what grows.
struct GrowingWords {
  Grows grows;
  std::string_view option;    ///< of a job
  std::string_view noun;      ///< "batch 16"
  std::string_view title;     ///< of the largest that fits
  std::string_view larger;    ///< of more, which the model does not take
  std::string_view smallest;  ///< that does not fit either
};

constexpr GrowingWords kGrowingWords[] = {
    {Grows::batch, "batch_size", "batch", "largest batch", "larger ones are", "batch 1"},
    {Grows::sequence, "seq_length", "sequence", "longest sequence", "longer ones are", "one token a sample"},
    {Grows::image, "image", "image", "largest image", "larger ones are", "the smallest image"},
    {Grows::images, "images", "images", "most images", "more are", "one image a sample"},
    {Grows::frames, "frames", "frames", "most frames", "more are", "one frame a sample"},
};

const GrowingWords& words_of(Grows grows) { return *std::ranges::find(kGrowingWords, grows, &GrowingWords::grows); }

/// Of an image as `image` takes it: 1024x768.
std::string size_text(const Fit& fit, std::int64_t size) {
  if (fit.grows != Grows::image || size == 0) return core::with_separators(size);
  const auto [width, height] = estimate::image_with_side(fit.shape, size);
  return std::to_string(width) + "x" + std::to_string(height);
}

/// Of an image width and height, as in a job; nothing where there is none.
Json size_json(const Fit& fit, std::int64_t size) {
  if (fit.grows != Grows::image) return size;
  const auto [width, height] = estimate::image_with_side(fit.shape, size);
  return size == 0 ? Json(nullptr) : Json::array({width, height});
}

/// What of the sizes below the largest is safe, and what needs no flush of the cache: nothing where the largest is
/// both.
std::string smaller_sizes(const Fit& fit, const GpuProfile& gpu) {
  const std::string noun(words_of(fit.grows).noun);
  if (fit.safe.size == fit.size) return {};
  std::string text = "safe " + noun + " ";
  if (fit.safe.estimate) {
    text += size_text(fit, fit.safe.size) + ": " + core::to_string(fit.safe.estimate->expected) + " of " +
            room_of(*fit.safe.estimate, gpu) + "\n";
  } else {
    text += "none: even the smallest is tight\n";
  }
  if (fit.without_flushes.size == fit.size || fit.without_flushes.size == fit.safe.size) return text;
  return text + noun + " " + size_text(fit, fit.without_flushes.size) +
         " is the largest without cache flushes: " + core::to_string(fit.without_flushes.estimate->expected) + "\n";
}

/// A recording of one size has no batch size of its own, unless it says which one it was.
std::string batch_words(const ModelGraph& graph, const TrainingJob& job) {
  const auto* recording = graph.recording();
  if (recording != nullptr && !recording->follows_batch() && !recording->recorded(0)) return "one size, as recorded";
  return "batch " + core::with_separators(job.batch_size);
}

}  // namespace

std::string padded(std::string_view text, std::size_t width, bool right) {
  const std::string space(text.size() < width ? width - text.size() : 0, ' ');
  return right ? space + std::string(text) : std::string(text) + space;
}

Json to_json(const std::vector<estimate::Assumption>& assumed) {
  Json json = Json::array();
  for (const estimate::Assumption& one : assumed) json.push_back({{"about", one.about}, {"text", one.text}});
  return json;
}

Json to_json(const MemoryEstimate& estimate) {
  Json breakdown = Json::object();
  for (const auto& part : estimate.breakdown.parts()) {
    breakdown[std::string(part.name)] = estimate.tells(part.name) ? Json(part.bytes.count()) : Json(nullptr);
  }
  Json json;
  json["expected_bytes"] = estimate.expected.count();
  json["lower_bytes"] = estimate.lower.count();
  json["upper_bytes"] = estimate.upper.count();
  json["upper_uncut_bytes"] = estimate.upper_uncut.count();
  json["upper_coverage"] = estimate.upper_coverage ? Json(*estimate.upper_coverage) : Json(nullptr);
  json["assumed"] = to_json(estimate.assumed);
  json["allocated_bytes"] = optional_bytes(estimate.allocated);
  json["reserved_bytes"] = optional_bytes(estimate.reserved);
  json["device_bytes"] = optional_bytes(estimate.device);
  json["fits"] = estimate.fits;
  json["verdict"] = model::name_of(estimate::kVerdicts, estimate.verdict);
  json["most_needed_bytes"] = estimate.most_needed.count();
  json["lower_bound"] = estimate.lower_bound;
  json["retries"] = estimate.retries;
  json["breakdown"] = std::move(breakdown);
  json["peak"] = peak_json(estimate.peak_layer);
  if (!estimate.bins.empty()) {
    json["bins"] = Json::array();
    for (const estimate::Bin& bin : estimate.bins) {
      json["bins"].push_back({{"lower_bytes", bin.lower.count()},
                              {"upper_bytes", bin.upper.count()},
                              {"probability", rounded_share(bin.probability)}});
    }
  }
  if (!estimate.leaves_out.empty()) json["leaves_out"] = estimate.leaves_out;
  if (!estimate.provenance.weights.empty()) json["model"] = estimate.provenance.weights;
  if (!estimate.provenance.weights.empty() || !estimate.leaves_out.empty()) {
    json["out_of_domain"] = estimate.out_of_domain;
  }
  json["coverage"] = {{"layers_total", estimate.coverage.layers_total},
                      {"layers_unknown", estimate.coverage.layers_unknown},
                      {"edges_inferred", estimate.coverage.edges_inferred}};
  if (!estimate.coverage.edges.empty()) json["coverage"]["edges"] = estimate.coverage.edges;
  return json;
}

Json head_json(const EstimatedJob& estimated_job) {
  Json json;
  json["schema"] = 1;
  json["summary"] = summary_json(*estimated_job.graph);
  json["job"] = training_json(estimated_job);
  json["gpu"] = estimated_job.gpu->name;
  json["capacity_bytes"] = estimated_job.gpu->capacity().count();
  return json;
}

Json to_json(const EstimatedJob& estimated_job) {
  Json json = head_json(estimated_job);
  json["estimates"] = Json::array();
  for (const Answer& answer : estimated_job.answers) json["estimates"].push_back(to_json(answer));
  return json;
}

Json to_json(const EstimatedJob& estimated_job, std::string_view estimator, const Fit& fit, double seconds) {
  Json json = head_json(estimated_job);
  const GrowingWords& words = words_of(fit.grows);
  const std::string noun(words.noun);
  std::string key(words.title);
  std::replace(key.begin(), key.end(), ' ', '_');
  json["job"].erase(std::string(words.option));
  json["estimator"] = estimator;
  json[key] = size_json(fit, fit.size);
  json["safe_" + noun] = size_json(fit, fit.safe.size);
  json[noun + "_without_flushes"] = size_json(fit, fit.without_flushes.size);
  json["at_least"] = fit.at_least;
  if (fit.model_ends) json["model_ends"] = to_json(*fit.model_ends);
  json["estimate"] = optional_estimate(fit.estimate);
  json["safe_estimate"] = optional_estimate(fit.safe.estimate);
  json["one_more"] = optional_estimate(fit.next);
  json["estimates_made"] = fit.estimates;
  json["seconds"] = seconds;
  return json;
}

Json to_json(const Error& error) {
  Json json = {{"code", core::to_string(error.code)}, {"message", error.message}};
  if (!error.place.file.empty()) json["file"] = error.place.file;
  if (error.place.line > 0) json["line"] = error.place.line;
  if (!error.place.element.empty()) json["element"] = error.place.element;
  return json;
}

std::string headline(const EstimatedJob& estimated_job, std::optional<Grows> looked_for) {
  const ModelGraph& graph = *estimated_job.graph;
  const TrainingJob& job = estimated_job.job;
  std::string text = (graph.file().empty() ? "" : graph.file() + ": ") + graph.format() + ", " +
                     core::with_separators(static_cast<std::int64_t>(graph.layers().size())) + " layers, " +
                     core::with_separators(graph.parameters()) + " parameters";
  if (graph.printed_batch_size()) text += ", printed at batch " + core::with_separators(*graph.printed_batch_size());
  text += "\n";
  if (looked_for != Grows::batch) text += batch_words(graph, job) + ", ";
  const bool beside_images = looked_for && *looked_for > Grows::sequence && graph.reads_tokens();
  const std::string tokens = core::with_separators(job.sequence_length.value_or(0));
  if (job.sequence_length) text += (beside_images ? tokens + " tokens of text" : "sequence " + tokens) + ", ";
  text += std::string(model::name_of(model::kPrecisions, job.precision)) + ", " +
          std::string(model::name_of(model::kOptimizers, job.optimizer)) + unusual(estimated_job, looked_for) +
          ", on " + estimated_job.gpu->name + " (" + estimated_job.gpu->title + ", " +
          core::to_string(estimated_job.gpu->capacity()) + ")\n";
  return text;
}

std::string_view option_of(Grows grows) { return words_of(grows).option; }

std::string to_text(const Fit& fit, const GpuProfile& gpu) {
  const GrowingWords& words = words_of(fit.grows);
  const std::string found = std::string(words.title) + (fit.at_least ? ": at least " : " ") + size_text(fit, fit.size);
  const std::string takes =
      need_of(fit.estimate) + " of " + (fit.estimate ? room_of(*fit.estimate, gpu) : core::to_string(gpu.capacity()));
  if (fit.at_least) return smaller_sizes(fit, gpu) + found + " (" + takes + "); larger ones are not tried\n";
  std::string text = smaller_sizes(fit, gpu) + found + ": " + takes + "; ";
  if (fit.model_ends) {
    text += std::string(words.larger) + " not for this model: " + said(fit.model_ends->message) + "\n";
  } else {
    text +=
        std::string(words.noun) + " " + size_text(fit, fit.size + fit.step) + " would need " + need_of(fit.next) + "\n";
  }
  return text + why_tight(*fit.estimate, gpu, {}) + assumed_text(*fit.estimate);
}

std::string why_nothing_fits(const Fit& fit, const EstimatedJob& estimated_job) {
  return "not even " + std::string(words_of(fit.grows).smallest) + " fits: it would need " + need_of(fit.next) +
         " of " + core::to_string(estimated_job.gpu->capacity()) + " on " + estimated_job.gpu->name;
}

Error does_not_fit(const Fit& fit, const EstimatedJob& estimated_job) {
  return {ErrorCode::missing_information,
          why_nothing_fits(fit, estimated_job) + "; `gpumem advise` says what makes it fit",
          {estimated_job.graph->file(), 0, {}}};
}

std::string said(std::string_view message) { return job::spelled(message, job::kCommandLine); }

std::string said(const Error& error) { return said(core::to_string(error)); }

std::string assumed_text(const MemoryEstimate& estimate) {
  std::string text;
  for (const estimate::Assumption& assumption : estimate.assumed) {
    text += "  " + label(text.empty() ? "assumed" : "") + said(assumption.text) + "\n";
  }
  return text;
}

std::string to_text(const model::Warning& warning) {
  return core::to_string(Error{ErrorCode::malformed_input, warning.message, warning.place});
}

void print_warnings(const ModelGraph& graph) {
  for (const model::Warning& warning : graph.warnings()) {
    std::fprintf(stderr, "gpumem: warning: %s\n", said(to_text(warning)).c_str());
  }
}

void print_warnings(const EstimatedJob& estimated_job) {
  print_warnings(*estimated_job.graph);
  for (const model::Warning& guess : estimated_job.guesses) {
    std::fprintf(stderr, "gpumem: warning: %s\n", said(to_text(guess)).c_str());
  }
}

double share_of(Bytes part, Bytes whole) {
  return static_cast<double>(part.count()) / static_cast<double>(std::max<std::int64_t>(whole.count(), 1));
}

Gauge bar(double share, Tone tone) { return {share, share, share, tone}; }

std::string room_of(const MemoryEstimate& estimate, const GpuProfile& gpu) {
  const Bytes room = estimate.room_on(gpu.capacity());
  const std::string text = core::to_string(room);
  return room < gpu.capacity() ? text + " that the process may take" : text;
}

Gauge gauge_of(const MemoryEstimate& estimate, const GpuProfile& gpu) { return gauge_in(estimate, gpu.capacity()); }

Gauge gauge_in(const MemoryEstimate& estimate, Bytes room) {
  const auto share = [&](Bytes bytes) { return share_of(bytes, room); };
  const double expected = share(estimate.expected);
  const Tone tone = tone_of(estimate.verdict);
  if (!estimate.ranged) return {expected, expected, expected, tone};
  return {share(estimate.lower), expected, share(estimate.upper), tone};
}

std::string why_tight(const MemoryEstimate& estimate, const GpuProfile& gpu, const std::string& before) {
  if (estimate.verdict != estimate::Verdict::tight) return {};
  std::string text;
  if (estimate.retries > 0) {
    text += before + "it fits because the allocator gives back its cache " + times(estimate.retries) +
            ", which slows the job down\n";
  }
  if (estimate.upper_uncut > estimate.upper) {
    const std::string_view end = estimate.limit ? "what the process may take" : "what the GPU holds";
    text += before + "upper ends at " + std::string(end) + ": with more memory the job may take up to " +
            core::to_string(estimate.upper_uncut) + "\n";
  }
  if (estimate.most_needed > estimate.room_on(gpu.capacity())) {
    text += before + "it is tight: the job may need up to " + core::to_string(estimate.most_needed) +
            " without anything cached\n";
  }
  return text;
}

Cell fits_cell(estimate::Verdict verdict) {
  switch (verdict) {
    case estimate::Verdict::fits: return {"yes", tone_of(verdict)};
    case estimate::Verdict::tight: return {"tight", tone_of(verdict)};
    case estimate::Verdict::does_not_fit: return {"no", tone_of(verdict)};
    case estimate::Verdict::unknown: break;
  }
  return {"unknown", tone_of(verdict)};
}

std::string drawn_estimate(const MemoryEstimate& estimate, const GpuProfile& gpu, const Terminal& terminal) {
  if (!terminal.shown) return {};
  constexpr std::size_t kCells = 40;
  const std::string title = " of " + room_of(estimate, gpu);
  const std::size_t room = terminal.width - std::min(terminal.width, columns_of(title));
  return drawn(gauge_in(estimate, estimate.room_on(gpu.capacity())), std::clamp<std::size_t>(room, kCells / 4, kCells),
               terminal) +
         title + "\n" + gauge_legend(terminal);
}

std::string to_table(const EstimatedJob& estimated_job, const Terminal& terminal) {
  std::string text = headline(estimated_job) + "\n" + figures(estimated_job, terminal);
  for (const Answer& answer : estimated_job.answers) {
    if (!answer.estimate) continue;
    text += answer.estimate->bins.empty() ? breakdown(answer, *estimated_job.gpu, terminal) : bins(answer, terminal);
    text += out_of_domain(answer);
  }
  return text + notes(estimated_job);
}

}  // namespace gpumem::cli
