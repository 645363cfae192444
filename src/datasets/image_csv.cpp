#include "gpumem_datasets/runs_tables.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

#include "gpumem/core/result.hpp"
#include "gpumem/job/job_options.hpp"
#include "gpumem/summary/model_folder.hpp"
#include "gpumem_datasets/adapter_file.hpp"
#include "gpumem_datasets/summary_shelf.hpp"
#include "image_models.hpp"

namespace gpumem::datasets {

namespace {
namespace image_csv_detail {

constexpr std::array<std::string_view, 12> kColumns = {"name",          "model",     "method", "batch",
                                                       "height",        "width",     "frames", "frozen_dtype",
                                                       "checkpointing", "optimizer", "figure", "measured_mib"};
constexpr double kMib = 1024.0 * 1024.0;

/// Words of a cell, and the option that they set.
struct Wording {
  std::string_view column;
  std::string_view cell;
  std::string_view option;
  std::string_view value;
};
constexpr Wording kWordings[] = {
    {"checkpointing", "none", "checkpointing", "none"},
    {"checkpointing", "full", "checkpointing", "full"},
    {"checkpointing", "full (diffusers enable_gradient_checkpointing)", "checkpointing", "full"},
    {"checkpointing", "full, with attention activations offloaded to the CPU", "checkpointing", "full+host-attention"},
    {"checkpointing", "two blocks of every four, attention activations offloaded to the CPU", "checkpointing",
     "joined-every-other:2+host-attention"},
    {"checkpointing", "two blocks a checkpoint", "checkpointing", "joined:2"},
    {"checkpointing", "two blocks of every four", "checkpointing", "joined-every-other:2"},
    {"optimizer", "adamw_bf16", "optimizer", "adamw-bf16"},
    {"optimizer", "optimi-lion", "optimizer", "optimi-lion"},
    {"optimizer", "adamw (torch, foreach)", "optimizer", "adamw"},
    {"optimizer", "adamw (torch)", "optimizer", "adamw"},
    {"optimizer", "adamw8bit (bitsandbytes)", "optimizer", "adamw-8bit"},
    {"optimizer", "adamw, state and gradients on the CPU (torchao CPUOffloadOptimizer)", "optimizer", "adamw"},
    {"optimizer", "adamw, state and gradients on the CPU (torchao CPUOffloadOptimizer)", "offload", "optimizer"},
    {"frozen_dtype", "", "base_dtype", "precision"},
    {"frozen_dtype", "bf16", "base_dtype", "bf16"},
    {"frozen_dtype", "bf16 (upcast from fp8)", "base_dtype", "bf16"},
    {"frozen_dtype", "int8 (SDNQ, quantised matmul, Hadamard)", "base_dtype", "bf16"},
    {"frozen_dtype", "int8 (SDNQ, quantised matmul, Hadamard)", "quantize", "int8-sdnq"},
    {"frozen_dtype", "fp8 dynamic (torchao)", "base_dtype", "bf16"},
    {"frozen_dtype", "fp8 dynamic (torchao)", "quantize", "fp8-torchao"},
    // Ideogram's own layers make their weight whole for each product, as torchao's do
    // (helpers/models/ideogram/quantized_loading.py, Fp8Linear).
    {"frozen_dtype", "fp8 weight only (checkpoint)", "base_dtype", "bf16"},
    {"frozen_dtype", "fp8 weight only (checkpoint)", "quantize", "fp8wo-torchao"},
    {"frozen_dtype", "fp8 weight only (torchao)", "base_dtype", "bf16"},
    {"frozen_dtype", "fp8 weight only (torchao)", "quantize", "fp8wo-torchao"},
    {"offload", "", "", ""},
    {"offload", "optimizer+gradients", "", ""},
    {"offload", "embeddings and latents precomputed", "", ""},
    {"offload", "checkpointed activations on the CPU; embeddings and latents precomputed", "offload", "checkpoints"},
    {"offload", "ramtorch: frozen weights stream from the CPU; embeddings and latents precomputed", "offload",
     "ramtorch"},
    {"offload", "vae and text encoder on the CPU, embeddings and latents precomputed on the GPU", "", ""},
    {"compile", "", "", ""},
    {"compile", "no", "", ""},
    {"compile", "regional, default mode", "compile", "true"},
};

core::Status set(job::JobRequest& request, std::string_view name, std::string_view word) {
  const job::JobOption* const option = job::find_option(name);
  if (option == nullptr) return core::Done{};
  return job::set_option_text(*option, request, word);
}

/// "block swap of 11 blocks; embeddings and latents precomputed": the number, by SimpleTuner's rule.
std::optional<core::Status> take_block_swap(std::string_view cell, job::JobRequest& request) {
  constexpr std::string_view kBegin = "block swap of ";
  constexpr std::string_view kRest = " blocks; embeddings and latents precomputed";
  if (!cell.starts_with(kBegin) || !cell.ends_with(kRest)) return std::nullopt;
  cell.remove_prefix(kBegin.size());
  return set(request, "block_swap", "streamed:" + std::string(cell.substr(0, cell.size() - kRest.size())));
}

/// A cell of a column of kWordings. Errors: words that are not in the list, which nothing here models.
core::Status take_words(const core::CsvCells& cells, std::string_view column, job::JobRequest& request,
                        MeasuredRun& run) {
  const std::string_view cell = cells.text(column);
  bool known = false;
  for (const Wording& row : kWordings) {
    if (row.column != column || row.cell != cell) continue;
    known = true;
    if (row.option.empty()) continue;
    if (core::Status taken = set(request, row.option, row.value); !taken) return taken;
  }
  if (known) return core::Done{};
  if (column == "offload") {
    if (const std::optional<core::Status> swapped = take_block_swap(cell, request)) return *swapped;
  }
  run.refusal = "not modelled: " + std::string(column) + " " + std::string(cell.empty() ? "not stated" : cell);
  return cells.malformed(run.refusal);
}

/// "area of 480x480 px, aspect kept": the size of a square of the area, where the table gives none. How many tokens it
/// makes hardly depends on the aspect.
std::optional<model::PictureSize> size_of_area(std::string_view notes) {
  constexpr std::string_view kArea = "area of ";
  const std::size_t at = notes.find(kArea);
  if (at == std::string_view::npos) return std::nullopt;
  notes.remove_prefix(at + kArea.size());
  model::PictureSize size;
  const auto [middle, fault] = std::from_chars(notes.data(), notes.data() + notes.size(), size.width);
  if (fault != std::errc() || middle == notes.data() + notes.size() || *middle != 'x') return std::nullopt;
  const auto [end, other] = std::from_chars(middle + 1, notes.data() + notes.size(), size.height);
  return other == std::errc() ? std::optional(size) : std::nullopt;
}

/// "Resolution: 1024x1024", "Resolution: 1024 px": what the table's page says of a family, where its data backend is
/// not in the repository or keeps the pictures' aspect. A number alone is no size: it may be of sounds.
std::optional<model::PictureSize> size_of_page(std::string_view notes) {
  constexpr std::string_view kPage = "page: Resolution: ";
  if (!notes.starts_with(kPage)) return std::nullopt;
  notes.remove_prefix(kPage.size());
  const char* const last = notes.data() + notes.size();
  model::PictureSize size;
  const auto [middle, fault] = std::from_chars(notes.data(), last, size.width);
  if (fault != std::errc()) return std::nullopt;
  const std::string_view rest(middle, last);
  size.height = size.width;
  if (rest.starts_with(" px")) return size;
  if (!rest.starts_with("x")) return std::nullopt;
  return std::from_chars(middle + 1, last, size.height).ec == std::errc() ? std::optional(size) : std::nullopt;
}

core::Status take_sample(const core::CsvCells& cells, job::JobRequest& request, MeasuredRun& run) {
  const auto whole = [&](std::string_view column, std::int64_t& into) -> core::Status {
    const auto read = cells.whole(column);
    if (!read) return read.error();
    into = read->value_or(0);
    return core::Done{};
  };
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::int64_t frames = 0;
  std::int64_t text = 0;
  core::Status read = whole("batch", request.training.batch_size);
  if (read) read = whole("height", height);
  if (read) read = whole("width", width);
  if (read) read = whole("frames", frames);
  if (read) read = whole("text_tokens", text);
  if (!read) return read;
  if (height < 1 || width < 1) {
    std::optional<model::PictureSize> area = size_of_area(cells.text("notes"));
    if (!area) area = size_of_page(cells.text("notes"));
    if (area) width = area->width;
    if (area) height = area->height;
  }
  if (height < 1 || width < 1 || request.training.batch_size < 1) {
    const bool sounds = cells.text("notes").find("audio") != std::string_view::npos;
    run.refusal = sounds ? "the seconds of its sounds are missing" : "the size of its samples is missing";
    return cells.malformed(run.refusal);
  }
  request.training.image = {width, height};
  if (frames > 1) request.training.frames = frames;
  if (text > 0) request.training.sequence_length = text;
  return core::Done{};
}

/// "14x512x7680" is their product; nothing for any other word.
std::optional<double> product_of(std::string_view word) {
  double product = 1.0;
  while (true) {
    std::int64_t factor = 0;
    const auto [stop, fault] = std::from_chars(word.data(), word.data() + word.size(), factor);
    if (fault != std::errc()) return std::nullopt;
    product *= static_cast<double>(factor);
    word.remove_prefix(static_cast<std::size_t>(stop - word.data()));
    if (word.empty()) return product;
    if (word.front() != 'x') return std::nullopt;
    word.remove_prefix(1);
  }
}

/// The parts of a text between any of these letters.
std::vector<std::string_view> parted(std::string_view text, std::string_view letters) {
  std::vector<std::string_view> parts;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find_first_of(letters, begin), text.size());
    if (end > begin) parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

/// Bytes of an entry such as "dinov2-base fp32 (86580480 parameters)" or "prompt cache 14x512x7680 bf16".
double entry_bytes(std::string_view entry) {
  double elements = 0.0;
  double size = 2.0;
  std::string_view before;
  for (const std::string_view word : parted(entry, " ()")) {
    const std::optional<double> product = product_of(word);
    if (product && word.find('x') != std::string_view::npos) elements = *product;
    if (word == "parameters") elements = product_of(before).value_or(0.0);
    if (word == "int64") size = 8.0;
    if (word == "fp32") size = 4.0;
    before = word;
  }
  return elements * size;
}

/// What lies on the GPU besides the model: entries between semicolons. What names no size is a remark.
core::Result<std::int64_t> listed_mib(std::string_view list) {
  constexpr double kMost = 1e9;  // MiB
  double bytes = 0.0;
  for (const std::string_view entry : parted(list, ";")) bytes += entry_bytes(entry);
  if (bytes / kMib > kMost) return core::malformed("parts_on_gpu is more than any GPU holds");
  return static_cast<std::int64_t>(bytes / kMib);
}

/// Which program trained: its loop, its types, and what else lies on the GPU.
core::Status take_program(const core::CsvCells& cells, job::JobRequest& request) {
  model::TrainingJob& job = request.training;
  const std::string_view compute = cells.text("compute_dtype");
  const std::string_view trained = cells.text("trainable_dtype");
  const bool plain = compute == "no autocast";
  job.lora_dtype = trained.starts_with("fp32") ? model::AdapterType::fp32 : model::AdapterType::bf16;
  job.precision = plain ? model::Precision::bf16 : model::Precision::amp_bf16;
  // accelerate's prepare() wraps forward in autocast and hands out float32; gradients are dropped after the step.
  job.loop = plain ? model::Loop::script : model::Loop::hf_trainer;
  job.zero_grad = plain ? model::ZeroGrad::before_forward : model::ZeroGrad::step_end;
  const core::Result<std::int64_t> listed = listed_mib(cells.text("parts_on_gpu"));
  if (!listed) return cells.malformed(listed.error().message);
  job.resident = *listed;
  return core::Done{};
}

/// "to_k to_q (family default)" as gpumem names them: "to_k+to_q".
std::string joined_targets(std::string_view cell) {
  std::string targets;
  for (const std::string_view word : parted(cell.substr(0, cell.find(" (")), " ,[]\"")) {
    targets += (targets.empty() ? "" : "+") + std::string(word);
  }
  return targets;
}

core::Status take_method(const core::CsvCells& cells, const std::filesystem::path& folder, job::JobRequest& request,
                         MeasuredRun& run) {
  constexpr std::string_view kAdapter = "adapter: ";
  const std::string_view method = cells.text("method");
  const std::string_view notes = cells.text("notes");
  if (method == "full") {
    // CPUOffloadOptimizer(offload_gradients=True) of torchao takes each gradient away when it is there, as an update in
    // backward ends it.
    request.training.optimizer_in_backward = request.training.offload == model::Offload::optimizer;
    request.training.base_dtype = model::BaseType::precision;
    request.training.lora_dtype = model::AdapterType::fp32;
    return core::Done{};
  }
  if (const std::size_t at = notes.find(kAdapter); at != std::string_view::npos) {
    const std::string file = (folder / notes.substr(at + kAdapter.size())).lexically_normal().string();
    return take_moved_adapter_file(file, cells, request, run);
  }
  if (method == "LOKR (lycoris)") {
    return take_lycoris_example((folder / "simpletuner_examples.json").string(), cells, request, run);
  }
  if (method != "LORA" || cells.text("rank").empty()) {
    run.refusal = method == "LORA" ? "the rank of its adapters is missing"
                                   : "settings of the method " + std::string(method) + " are missing";
    return cells.malformed(run.refusal);
  }
  core::Status read = set(request, "lora", cells.text("rank"));
  const std::string targets = joined_targets(cells.text("targets"));
  if (read && !targets.empty()) read = set(request, "lora_targets", targets);
  // The default of SimpleTuner's --lora_dropout.
  if (read && cells.text("software").starts_with("SimpleTuner")) read = set(request, "lora_dropout", "0.1");
  return read;
}

void apply_intervals(Intervals intervals, model::TrainingJob& job) {
  model::CheckpointPolicy& policy = job.checkpoints;
  if (intervals == Intervals::no_effect) {
    policy = {};
    job.activation_checkpointing = false;
  }
  const bool set = policy.kind == model::Checkpoints::joined || policy.kind == model::Checkpoints::joined_every_other;
  if (!set || intervals == Intervals::joined) return;
  const bool strided = policy.kind == model::Checkpoints::joined_every_other;
  const bool later = job.quantize == model::Quantization::int8_sdnq;
  const bool ignored = intervals == Intervals::ignored || (intervals == Intervals::int8_alone && !later);
  const model::Checkpoints read = strided ? model::Checkpoints::every_other : model::Checkpoints::first_of;
  policy.kind = ignored ? model::Checkpoints::full : read;
}

/// Python's round(side / step) step: halves go to the even number.
std::int64_t aligned(std::int64_t side, std::int64_t step) {
  const std::int64_t below = side / step;
  const std::int64_t twice = 2 * (side % step);
  const bool up = twice > step || (twice == step && below % 2 == 1);
  return std::max<std::int64_t>(below + (up ? 1 : 0), 1) * step;
}

/// What the table leaves open and the trainer's code says of a model's samples.
void complete_sample(const core::CsvCells& cells, const KnownModel& known, job::JobRequest& request) {
  if (!cells.text("software").starts_with("SimpleTuner")) return;
  // calculate_new_size_by_pixel_area() (helpers/multiaspect/image.py) rounds the side of a square of the area first.
  if (cells.text("height").empty()) {
    for (std::int64_t& side : request.training.image) side = aligned(side, known.alignment);
  }
  if (known.prompt > 0 && !request.training.sequence_length) request.training.sequence_length = known.prompt;
}

/// The text of a config that is in no file.
std::string config_of(const KnownModel& known) {
  if (known.config.starts_with("{")) return std::string(known.config);
  const auto published = summary::published_model(known.name);
  if (!published) return {};
  const std::string more = known.config.empty() ? "" : ", " + std::string(known.config);
  return published->config.substr(0, published->config.size() - 1) + more + "}";
}

core::Status take_model(const core::CsvCells& cells, const std::filesystem::path& folder, SummaryShelf& shelf,
                        job::JobRequest request, MeasuredRun& run) {
  run.refusal = "a model that is not read";
  const KnownModel* const known = known_image_model(cells.text("model"));
  if (known == nullptr) {
    return cells.malformed("the config.json of " + std::string(cells.text("model")) + " is missing");
  }
  apply_intervals(known->intervals, request.training);
  complete_sample(cells, *known, request);
  if (!known->targets.empty() && cells.text("targets").ends_with("(family default)")) {
    if (core::Status taken = set(request, "lora_targets", known->targets); !taken) return taken;
  }
  if (known->streams_blocks && request.training.offload == model::Offload::ramtorch) {
    request.training.offload = model::Offload::ramtorch_blocks;
  }
  model::HostAttention& hosted = request.training.checkpoints.host_attention;
  if (known->hooks_kernels && hosted != model::HostAttention::none) hosted = model::HostAttention::kernel;
  auto graph = known->file.empty() ? shelf.parse(std::string(known->name), config_of(*known))
                                   : shelf.take((folder / "configs" / known->file).lexically_normal().string());
  if (!graph) return graph.error();
  auto job = job::job_from(request, *std::move(graph));
  if (!job) return cells.malformed(job.error().message);
  run.refusal.clear();
  run.job = *std::move(job);
  return core::Done{};
}

core::Status take_measurement(const core::CsvCells& cells, MeasuredRun& run) {
  const auto measured = cells.number("measured_mib");
  if (!measured) return measured.error();
  run.measured_mib = *measured;
  run.out_of_memory = cells.text("status") == "OOM";
  const std::string_view figure = cells.text("figure");
  if (figure.starts_with("device")) run.figure = Figure::device;
  else if (figure == "reserved") run.figure = Figure::reserved;
  else if (figure == "allocated (inferred)") run.figure = Figure::allocated;
  else if (figure == "allocated at the end of a step") run.figure = Figure::after_step;
  else {
    run.refusal = "a figure that is no peak: " + std::string(figure);
    return cells.malformed(run.refusal);
  }
  if (const auto gpus = cells.whole("gpus"); gpus && *gpus) run.gpus = **gpus;
  if (run.gpus > 1) {
    run.refusal = "how several GPUs share the work is missing";
    return cells.malformed(run.refusal);
  }
  return core::Done{};
}

std::string gpu_of(std::string_view cell) {
  constexpr std::pair<std::string_view, std::string_view> kGpus[] = {
      {"H100 80GB", "h100-80gb"}, {"L40S", "l40s-48gb"}, {"L40S 48GB", "l40s-48gb"}, {"A100 80GB", "a100-80gb"}};
  for (const auto& [name, profile] : kGpus) {
    if (cell == name) return std::string(profile);
  }
  return std::string(cell);
}

MeasuredRun run_of(const core::CsvCells& cells, const std::filesystem::path& folder, SummaryShelf& shelf) {
  MeasuredRun run;
  run.line = cells.line();
  run.name = cells.text("name");
  run.gpu = gpu_of(cells.text("gpu"));
  run.source = cells.text("source").substr(0, cells.text("source").find('@'));
  run.training = cells.text("method");
  job::JobRequest request;
  core::Status read = take_measurement(cells, run);
  if (read) read = take_sample(cells, request, run);
  for (const std::string_view column : {"checkpointing", "optimizer", "frozen_dtype", "offload", "compile"}) {
    if (read) read = take_words(cells, column, request, run);
  }
  if (read) read = take_program(cells, request);
  if (read) read = take_method(cells, folder, request, run);
  if (read) read = take_model(cells, folder, shelf, request, run);
  if (!read) run.error = std::move(read).error();
  if (run.error && run.refusal.empty()) run.refusal = "a row that is malformed";
  return run;
}

bool sniff(const core::CsvTable& table) { return table.has("parts_on_gpu") && table.has("latent_tokens"); }

core::Result<MeasuredRuns> read(const core::CsvTable& table, const RunsOptions& options) {
  for (const std::string_view column : kColumns) {
    if (table.has(column)) continue;
    return core::Error{core::ErrorCode::malformed_input, "has no column " + core::quoted(column),
                       core::Place{table.file, 1, {}}};
  }
  SummaryShelf shelf(options);
  const std::filesystem::path folder = std::filesystem::path(table.file).parent_path();
  MeasuredRuns all;
  all.format = image_csv().name;
  for (const core::CsvRow& row : table.rows) {
    const core::CsvCells cells(table, row);
    if (cells.text("status") == "upper bound") ++all.dropped;
    else all.runs.push_back(run_of(cells, folder, shelf));
  }
  return all;
}

}  // namespace image_csv_detail
}  // namespace

const RunsFormat& image_csv() {
  static constexpr RunsFormat kFormat = {
      "image", "runs of image and video models, with their configs (name,model,...,latent_tokens,...,parts_on_gpu,...)",
      &image_csv_detail::sniff, &image_csv_detail::read};
  return kFormat;
}

}  // namespace gpumem::datasets
