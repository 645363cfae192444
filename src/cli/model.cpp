#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "commands.hpp"
#include "gpumem/core/json.hpp"
#include "gpumem/ml/model_config.hpp"
#include "gpumem/ml/trained_model.hpp"
#include "json_lines.hpp"

namespace gpumem::cli {

namespace {

using core::malformed;

using Json = nlohmann::ordered_json;
using core::JsonValue;
using Kind = JsonValue::Kind;
using ml::TrainedModel;

// ---- show and verify

/// A number as people write it: six significant digits.
std::string shown(double number) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%g", number);
  return text.data();
}

std::string shown(const std::optional<double>& number) { return number ? shown(*number) : "-"; }

/// Text out of a file, which must not speak to the terminal.
std::string printable(std::string text) {
  for (char& byte : text) {
    if (static_cast<unsigned char>(byte) < 0x20 || byte == 0x7F) byte = '?';
  }
  return text;
}

std::string counted(std::int64_t count, const std::string& what) {
  return core::with_separators(count) + " " + what + (count == 1 ? "" : "s");
}

/// "3 hidden layers", "1 to 7 hidden layers".
std::string depths_text(std::size_t least, std::size_t most) {
  const std::string layers = counted(static_cast<std::int64_t>(most), "hidden layer");
  return (least == most ? "" : std::to_string(least) + " to ") + layers;
}

std::string members_text(const std::vector<std::vector<std::int64_t>>& members) {
  std::size_t least = members.front().size();
  std::size_t most = 0;
  std::int64_t widest = 0;
  for (const auto& widths : members) {
    least = std::min(least, widths.size());
    most = std::max(most, widths.size());
    for (const std::int64_t width : widths) widest = std::max(widest, width);
  }
  return counted(static_cast<std::int64_t>(members.size()), "perceptron") + " of " + depths_text(least, most) +
         (most == 0 ? "" : ", up to " + std::to_string(widest) + " wide");
}

std::string encoder_text(const ml::EncoderShape& encoder) {
  return "encoder of " + counted(encoder.layers, "layer") + ", width " + std::to_string(encoder.width) + ", " +
         counted(encoder.heads, "head") + ", feed-forward " + std::to_string(encoder.feed_forward) + " (embedding " +
         std::string(model::name_of(ml::kEmbeddings, encoder.embedding)) + ", attention " +
         std::string(model::name_of(ml::kAttentions, encoder.attention)) + ", pooling " +
         std::string(model::name_of(ml::kPoolings, encoder.pooling)) + "), ";
}

std::string reads_text(const ml::NetworkShape& network) {
  std::string text = counted(network.features, "feature");
  if (network.sequence_columns == 0) return text;
  return text + " and a sequence of up to " + counted(network.sequence_length, "row") + " of " +
         counted(network.sequence_columns, "figure");
}

std::string head_text(const ml::Head& head) {
  std::string text;
  if (head.edges_mib.empty()) {
    for (const std::string& name : head.names) text += (text.empty() ? "" : ", ") + name;
    return "values: " + text;
  }
  for (const double edge : head.edges_mib) text += (text.empty() ? "" : ", ") + shown(edge);
  return counted(static_cast<std::int64_t>(head.edges_mib.size()) - 1, "bin") + " with edges " + text +
         (head.of.empty() ? " MiB" : " of " + head.of);
}

/// Weights in all, and tensors that hold them.
std::string weights_text(const ml::NetworkShape& network) {
  const auto tensors = ml::tensors_of(network);
  std::int64_t weights = 0;
  for (const ml::TensorSpec& tensor : tensors) {
    std::int64_t elements = 1;
    for (const std::int64_t size : tensor.shape) elements *= size;  // bounded by validate()
    weights += elements;
  }
  return counted(weights, "weight") + " in " + counted(static_cast<std::int64_t>(tensors.size()), "tensor");
}

void print_line(const char* label, const std::string& text) {
  std::printf("%-13s %s\n", label, printable(text).c_str());
}

void print_specs(const char* title, const std::vector<ml::FeatureSpec>& specs) {
  if (specs.empty()) return;
  std::size_t widest = std::string_view(title).size();
  for (const ml::FeatureSpec& spec : specs) widest = std::max(widest, spec.name.size());
  const int width = static_cast<int>(std::min<std::size_t>(widest, 60));
  std::printf("\n%-*s  %-9s %11s %11s %11s %11s\n", width, title, "transform", "mean", "scale", "min", "max");
  for (const ml::FeatureSpec& spec : specs) {
    std::printf("%-*s  %-9s %11s %11s %11s %11s\n", width, printable(spec.name).c_str(),
                std::string(model::name_of(ml::kTransforms, spec.transform)).c_str(), shown(spec.mean).c_str(),
                shown(spec.scale).c_str(), shown(spec.min).c_str(), shown(spec.max).c_str());
  }
}

/// The largest deviation from the test vectors; that of a loaded model is within the tolerance.
Result<double> largest_deviation(const TrainedModel& model) {
  double largest = 0.0;
  for (const ml::TestVector& vector : model.config.test_vectors) {
    const Result<double> far = ml::deviation(model, vector);
    if (!far) return far.error();
    largest = std::max(largest, *far);
  }
  return largest;
}

/// The next power of ten above the deviation, from 1e-06 on: further digits depend on the machine's instructions.
std::string vectors_text(const TrainedModel& model, double far) {
  constexpr double kLeast = 1e-6;
  const std::string within = shown(far <= kLeast ? kLeast : std::pow(10.0, std::ceil(std::log10(far))));
  return counted(static_cast<std::int64_t>(model.config.test_vectors.size()), "test vector") + " reproduced within " +
         within + " (" + shown(ml::kTestVectorTolerance) + " is allowed)";
}

void print_model(const TrainedModel& model, double far) {
  const ml::ModelConfig& config = model.config;
  print_line("name", config.name);
  print_line("nets", std::string(model::name_of(ml::kNetKinds, config.nets)));
  print_line("reads", reads_text(config.network));
  print_line("gives", head_text(config.head));
  for (const ml::BranchShape& branch : config.network.branches) {
    print_line("branch", (branch.encoder ? encoder_text(*branch.encoder) : "") + members_text(branch.members));
  }
  print_line("holds", weights_text(config.network));
  print_line("verified", vectors_text(model, far));
  print_specs("feature", config.features);
  print_specs("of a row", config.sequence);
  if (!config.provenance.empty()) std::printf("\nprovenance\n");
  for (const auto& [name, text] : config.provenance) print_line(("  " + printable(name)).c_str(), text);
  if (!config.accuracy.empty()) std::printf("\naccuracy\n");
  for (const auto& [name, figure] : config.accuracy) print_line(("  " + printable(name)).c_str(), shown(figure));
}

/// Says how close the model in this folder is to its test vectors; returns the exit code.
int verify(const std::string& folder) {
  const Result<TrainedModel> model = ml::find_model(folder);
  if (!model) return report_error(model.error());
  const Result<double> far = largest_deviation(*model);
  if (!far) return report_error(far.error());
  std::printf("%s: %s, %s, %s\n", folder.c_str(), printable(model->config.name).c_str(),
              weights_text(model->config.network).c_str(), vectors_text(*model, *far).c_str());
  return 0;
}

// ---- run

Result<std::vector<double>> numbers_from(const JsonValue& json) {
  if (!json.is(Kind::list)) return malformed("must be a list of numbers");
  std::vector<double> numbers;
  numbers.reserve(json.size());
  for (const JsonValue& item : json.items()) {
    switch (item.kind()) {
      case Kind::integer: numbers.push_back(static_cast<double>(item.integer())); break;
      case Kind::beyond_int64: numbers.push_back(static_cast<double>(item.unsigned_integer())); break;
      case Kind::real: numbers.push_back(item.real()); break;
      default: return core::below(numbers.size(), malformed("must be a number"));
    }
  }
  return numbers;
}

Result<std::vector<std::vector<double>>> rows_from(const JsonValue& json) {
  if (!json.is(Kind::list)) return malformed("must be a list of rows, each a list of numbers");
  std::vector<std::vector<double>> rows;
  rows.reserve(json.size());
  for (const JsonValue& item : json.items()) {
    Result<std::vector<double>> row = numbers_from(item);
    if (!row) return core::below(rows.size(), std::move(row.error()));
    rows.push_back(*std::move(row));
  }
  return rows;
}

const JsonValue* field_of(const JsonValue& object, std::string_view name) {
  for (const JsonValue& field : object.items()) {
    if (field.key() == name) return &field;
  }
  return nullptr;
}

Result<std::vector<float>> outputs_for(const TrainedModel& model, const JsonValue& input) {
  if (!input.is(Kind::object)) return malformed("the line must be one JSON object");
  const JsonValue* features = field_of(input, "features");
  const JsonValue* sequence = field_of(input, "sequence");
  if (features == nullptr) return core::below("features", malformed("is missing"));
  const Result<std::vector<double>> numbers = numbers_from(*features);
  if (!numbers) return core::below("features", numbers.error());
  Result<std::vector<std::vector<double>>> rows = std::vector<std::vector<double>>();
  if (model.config.network.sequence_columns > 0) {
    if (sequence == nullptr) return core::below("sequence", malformed("is missing: the model reads one"));
    rows = rows_from(*sequence);
    if (!rows) return core::below("sequence", rows.error());
  }
  return ml::run_raw(model, *numbers, *rows);
}

/// A float as the shortest decimal that is this float, so that 0.1F reads 0.1.
double shortest(float value) {
  std::array<char, 32> text{};
  const auto written = std::to_chars(text.data(), text.data() + text.size(), value);
  double shortest = 0.0;
  std::from_chars(text.data(), written.ptr, shortest);
  return shortest;
}

std::vector<double> probabilities_of(const std::vector<float>& logits) {
  const double largest = static_cast<double>(*std::max_element(logits.begin(), logits.end()));
  std::vector<double> probabilities;
  double sum = 0.0;
  for (const float logit : logits) {
    // From the largest on, so that none overflows.
    probabilities.push_back(std::exp(static_cast<double>(logit) - largest));
    sum += probabilities.back();
  }
  for (double& probability : probabilities) probability /= sum;
  return probabilities;
}

Json answer_of(const ml::Head& head, const std::vector<float>& outputs) {
  Json json = {{"schema", 1}};
  if (head.edges_mib.empty()) {
    for (std::size_t index = 0; index < outputs.size(); ++index) {
      json["values"][head.names[index]] = shortest(outputs[index]);
    }
    return json;
  }
  for (const float output : outputs) json["logits"].push_back(shortest(output));
  json["probabilities"] = probabilities_of(outputs);
  const auto most = std::max_element(outputs.begin(), outputs.end()) - outputs.begin();
  const auto edge = head.edges_mib.begin() + most;
  json["class"] = most;
  json[head.of.empty() ? "range_mib" : "range"] = {*edge, *(edge + 1)};
  return json;
}

/// The caller's own name of a line; deeper values, which no caller needs, count as none.
std::optional<Json> id_of(const JsonValue& input) {
  const JsonValue* id = input.is(Kind::object) ? field_of(input, "id") : nullptr;
  if (id == nullptr) return std::nullopt;
  switch (id->kind()) {
    case Kind::integer: return Json(id->integer());
    case Kind::beyond_int64: return Json(id->unsigned_integer());
    case Kind::real: return Json(id->real());
    case Kind::text: return Json(std::string(id->text()));
    default: return std::nullopt;
  }
}

std::string answer(const TrainedModel& model, std::string_view line, std::int64_t number) {
  if (const auto fault = fault_of(line)) {
    return answer_line(error_object(malformed("the line " + *fault + "; an input is one JSON object a line")), number,
                       nullptr);
  }
  const Result<core::JsonDocument> input = core::JsonDocument::parse(line);
  if (!input) {
    Error error = input.error();
    error.place.line = 0;  // the answer names the line of the file
    return answer_line(error_object(error), number, nullptr);
  }
  const std::optional<Json> id = id_of(input->root());
  const Result<std::vector<float>> outputs = outputs_for(model, input->root());
  return answer_line(outputs ? answer_of(model.config.head, *outputs) : error_object(outputs.error()), number,
                     id ? &*id : nullptr);
}

}  // namespace

int run_model_show(const ModelShowOptions& options) {
  const Result<TrainedModel> model = ml::find_model(options.folder);
  if (!model) return report_error(model.error());
  if (options.json) {
    std::printf("%s", ml::write_model_config(model->config).c_str());
    return 0;
  }
  const Result<double> far = largest_deviation(*model);
  if (!far) return report_error(far.error());
  print_model(*model, *far);
  return 0;
}

int run_model_verify(const ModelVerifyOptions& options) {
  int worst = 0;
  for (const std::string& folder : options.folders) worst = std::max(worst, verify(folder));
  return worst;
}

int run_model_run(const ModelRunOptions& options) {
  const Result<TrainedModel> model = ml::find_model(options.folder);
  if (!model) return report_error(model.error());
  const auto done = answer_lines(
      options.file, [&](std::string_view line, std::int64_t number) { return answer(*model, line, number); });
  return done ? 0 : report_error(done.error());
}

}  // namespace gpumem::cli
