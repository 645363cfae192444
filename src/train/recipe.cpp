#include "recipe.hpp"

#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

namespace gpumem::train {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<model::Named<Schedule>, 2> kSchedules = {
    {{Schedule::constant, "constant"}, {Schedule::cosine, "cosine"}}};
constexpr std::array<model::Named<Loss>, 2> kValueLosses = {{{Loss::squared, "squared"}, {Loss::huber, "huber"}}};

/// Reads the fields of "training" one after the other; keeps the first error.
class Fields {
 public:
  Fields(const Json& json, std::string_view file) : json_(json), file_(file) {
    if (!json.is_object()) fail("", "must be an object");
  }

  /// The field; null if it is absent. It counts as known from now on.
  const Json* find(const char* name) {
    known_.emplace_back(name);
    const auto found = json_.find(name);
    return found == json_.end() ? nullptr : &*found;
  }

  void number(const char* name, double& to, double least, double most) {
    const Json* field = find(name);
    if (field == nullptr) return;
    if (!field->is_number() || !(field->get<double>() >= least && field->get<double>() <= most)) {
      fail(name, "must be a number of " + text_of(least) + " to " + text_of(most));
      return;
    }
    to = field->get<double>();
  }

  void whole(const char* name, std::int64_t& to, std::int64_t least, std::int64_t most) {
    const Json* field = find(name);
    if (field == nullptr) return;
    if (!field->is_number_integer() || field->get<double>() < static_cast<double>(least) ||
        field->get<double>() > static_cast<double>(most)) {
      fail(name, "must be a whole number of " + std::to_string(least) + " to " + std::to_string(most));
      return;
    }
    to = field->get<std::int64_t>();
  }

  void need(const char* name) {
    if (json_.is_object() && !json_.contains(name)) fail(name, "is missing");
  }
  void refuse_unknown() {
    if (!json_.is_object()) return;
    for (const auto& field : json_.items()) {
      if (std::find(known_.begin(), known_.end(), field.key()) == known_.end()) {
        fail(field.key(), "is not a field of a recipe's training");
      }
    }
  }
  void fail(const std::string& name, const std::string& message) {
    if (error_) return;
    const std::string pointer = "/training" + (name.empty() ? "" : "/" + core::shortened(name, 60));
    error_ = core::Error{core::ErrorCode::malformed_input, message, core::Place{std::string(file_), 0, pointer}};
  }
  [[nodiscard]] const std::optional<core::Error>& error() const { return error_; }

 private:
  static std::string text_of(double number) { return Json(number).dump(); }

  const Json& json_;
  std::string_view file_;
  std::vector<std::string> known_;
  std::optional<core::Error> error_;
};

void read_pinball(Fields& fields, const Json& loss, const ml::Head& head, Objective& objective) {
  objective.loss = Loss::pinball;
  const bool one_each = loss.size() == 1 && loss.contains("pinball") && loss["pinball"].is_array() &&
                        loss["pinball"].size() == head.names.size();
  if (!one_each) return fields.fail("loss", "must be {\"pinball\": [...]} with one quantile an output");
  for (const Json& quantile : loss["pinball"]) {
    const double share = quantile.is_number() ? quantile.get<double>() : 0.0;
    if (!(share > 0.0 && share < 1.0)) return fields.fail("loss", "has a quantile that is not between 0 and 1");
    objective.quantiles.push_back(share);
  }
}

void read_members(Fields& fields, bool& alone) {
  const Json* members = fields.find("members");
  if (members == nullptr) return;
  if (*members != "together" && *members != "alone") return fields.fail("members", "must be \"together\" or \"alone\"");
  alone = *members == "alone";
}

void read_objective(Fields& fields, const ml::Head& head, Objective& objective) {
  read_members(fields, objective.members_alone);
  fields.number("label_smoothing", objective.label_smoothing, 0.0, 0.9);
  const Json* loss = fields.find("loss");
  if (!head.edges_mib.empty()) {
    objective.loss = Loss::cross_entropy;
    if (loss != nullptr) fields.fail("loss", "is for heads of values; bins are trained by cross entropy");
    return;
  }
  if (head.spread > 0.0) {
    objective.loss = Loss::mixture;
    objective.spreads = ml::spreads_of(head);
    if (loss != nullptr) fields.fail("loss", "is for heads of values; a mixture is trained by its likelihood");
    return;
  }
  objective.loss = Loss::huber;
  if (objective.label_smoothing > 0.0) fields.fail("label_smoothing", "is for heads of bins");
  if (loss == nullptr) return;
  if (loss->is_object()) return read_pinball(fields, *loss, head, objective);
  const auto named =
      loss->is_string() ? model::value_of(kValueLosses, loss->get_ref<const std::string&>()) : std::nullopt;
  if (named) objective.loss = *named;
  else fields.fail("loss", "must be \"huber\", \"squared\" or {\"pinball\": [...]}");
}

void read_schedule(Fields& fields, Schedule& to) {
  const Json* schedule = fields.find("schedule");
  if (schedule == nullptr) return;
  const auto named =
      schedule->is_string() ? model::value_of(kSchedules, schedule->get_ref<const std::string&>()) : std::nullopt;
  if (named) to = *named;
  else fields.fail("schedule", "must be \"constant\" or \"cosine\"");
}

core::Result<TrainingOptions> read_training(const Json& json, const ml::ModelConfig& model, std::string_view file) {
  constexpr std::int64_t kMost = 1'000'000;
  constexpr double kLargest = 1e6;
  const ml::Head& head = model.head;
  TrainingOptions options;
  Fields fields(json, file);
  for (const char* name : {"epochs", "batch_size", "learning_rate"}) fields.need(name);
  fields.whole("epochs", options.epochs, 1, kMost);
  fields.whole("batch_size", options.batch_size, 2, kMost);
  fields.number("learning_rate", options.learning_rate, 0.0, kLargest);
  read_schedule(fields, options.schedule);
  fields.number("weight_decay", options.weight_decay, 0.0, kLargest);
  fields.number("dropout", options.dropout, 0.0, 0.95);
  fields.number("encoder_dropout", options.encoder_dropout, 0.0, 0.95);
  if (options.encoder_dropout != 0.0 && model.network.sequence_columns == 0) {
    fields.fail("encoder_dropout", "is for networks with encoders");
  }
  fields.number("gradient_clip", options.gradient_clip, 0.0, kLargest);
  auto seed = static_cast<std::int64_t>(options.seed);
  fields.whole("seed", seed, 0, INT64_MAX);
  options.seed = static_cast<std::uint64_t>(seed);
  fields.whole("folds", options.folds, 2, 100);
  fields.whole("early_stopping_patience", options.early_stopping_patience, 0, kMost);
  fields.number("validation_share", options.validation_share, 0.01, 0.5);
  fields.number("class_bias", options.class_bias, -100.0, 100.0);
  if (options.class_bias != 0.0 && head.edges_mib.empty()) fields.fail("class_bias", "is for heads of bins");
  read_objective(fields, head, options.objective);
  fields.refuse_unknown();
  if (fields.error()) return *fields.error();
  return options;
}

std::int64_t count_in(const Json& network, const char* name) {
  const auto found = network.find(name);
  constexpr std::int64_t kMost = 65'536;
  const bool usable = found != network.end() && found->is_number_integer() && found->get<double>() >= 0 &&
                      found->get<double>() <= static_cast<double>(kMost);
  return usable ? found->get<std::int64_t>() : 0;
}

/// The recipe as a config.json that the library reads: a test vector of zeros takes the place of those that training
/// makes.
Json config_of(Json json) {
  json["format"] = "gpumem-model";
  json.erase("training");
  const Json network = json.contains("network") && json["network"].is_object() ? json["network"] : Json::object();
  Json vector = {{"features", std::vector<double>(static_cast<std::size_t>(count_in(network, "features")))}};
  if (network.contains("sequence")) vector["sequence"] = Json::array();
  vector["outputs"] = std::vector<double>(static_cast<std::size_t>(count_in(network, "outputs")));
  json["test_vectors"] = Json::array({vector});
  return json;
}

core::Error malformed(std::string message, std::string_view file, std::string pointer) {
  return {core::ErrorCode::malformed_input, std::move(message), core::Place{std::string(file), 0, std::move(pointer)}};
}

}  // namespace

core::Result<Recipe> parse_recipe(std::string_view text, std::string_view file) {
  const Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded() || !json.is_object()) return malformed("is not a JSON object", file, "");
  if (json.value("format", Json()) != "gpumem-recipe") return malformed("must be \"gpumem-recipe\"", file, "/format");
  for (const char* made : {"test_vectors", "accuracy"}) {
    if (json.contains(made)) return malformed("is made by training; leave it out", file, std::string("/") + made);
  }
  if (!json.contains("training")) return malformed("is missing", file, "/training");
  core::Result<ml::ModelConfig> model = ml::parse_model_config(config_of(json).dump(), file);
  if (!model) return std::move(model).error();
  model->test_vectors.clear();
  const auto training = read_training(json["training"], *model, file);
  if (!training) return training.error();
  return Recipe{*std::move(model), *training};
}

}  // namespace gpumem::train
