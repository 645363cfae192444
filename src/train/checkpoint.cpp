#include "checkpoint.hpp"

#include <array>
#include <charconv>
#include <filesystem>

#include "gpumem/core/file.hpp"

namespace gpumem::train {

namespace {

constexpr std::string_view kWeights = "weights.";
constexpr std::string_view kFirst = "first_moment.";
constexpr std::string_view kSecond = "second_moment.";
constexpr std::string_view kBest = "best.";

void append(ml::TensorFile& to, const ml::TensorFile& from, std::string_view prefix) {
  for (const ml::Tensor& tensor : from.tensors) {
    to.tensors.push_back({std::string(prefix) + tensor.name, tensor.shape, tensor.values});
  }
}

ml::TensorFile taken(ml::TensorFile& from, std::string_view prefix) {
  ml::TensorFile part;
  for (ml::Tensor& tensor : from.tensors) {
    if (!tensor.name.starts_with(prefix)) continue;
    part.tensors.push_back({tensor.name.substr(prefix.size()), std::move(tensor.shape), std::move(tensor.values)});
  }
  return part;
}

/// The shortest text that is read back as the same number.
std::string text_of(double number) {
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), number);
  return {text.data(), end.ptr};
}

/// Reads the metadata, each field once; notes what is missing.
class Metadata {
 public:
  explicit Metadata(const ml::TensorFile& file) : file_(file) {}

  [[nodiscard]] std::string_view text(std::string_view name) {
    for (const auto& [key, value] : file_.metadata) {
      if (key == name) return value;
    }
    sound_ = false;
    return {};
  }
  template <typename Number>
  void number(std::string_view name, Number& to) {
    const std::string_view value = text(name);
    const auto read = std::from_chars(value.data(), value.data() + value.size(), to);
    sound_ = sound_ && read.ec == std::errc() && read.ptr == value.data() + value.size();
  }
  [[nodiscard]] bool sound() const { return sound_; }

 private:
  const ml::TensorFile& file_;
  bool sound_ = true;
};

core::Error fault(core::ErrorCode code, std::string message, std::string_view file) {
  return {code, std::move(message), core::Place{std::string(file), 0, {}}};
}

}  // namespace

std::string write_state(const RunState& state, std::string_view fingerprint) {
  ml::TensorFile file;
  append(file, state.training.weights, kWeights);
  append(file, state.training.first_moment, kFirst);
  append(file, state.training.second_moment, kSecond);
  append(file, state.best, kBest);
  file.metadata = {{"format", "gpumem-training-state"},
                   {"fingerprint", std::string(fingerprint)},
                   {"epoch", std::to_string(state.epoch)},
                   {"steps", std::to_string(state.training.steps)},
                   {"training_loss", text_of(state.training_loss)},
                   {"best_loss", text_of(state.best_loss)},
                   {"best_epoch", std::to_string(state.best_epoch)},
                   {"done", state.done ? "1" : "0"}};
  return ml::write_safetensors(file);
}

core::Result<RunState> parse_state(std::string_view bytes, std::string_view fingerprint, std::string_view name) {
  auto file = ml::parse_safetensors(bytes, name);
  if (!file) return std::move(file).error();
  Metadata metadata(*file);
  RunState state;
  int done = 0;
  metadata.number("epoch", state.epoch);
  metadata.number("steps", state.training.steps);
  metadata.number("training_loss", state.training_loss);
  metadata.number("best_loss", state.best_loss);
  metadata.number("best_epoch", state.best_epoch);
  metadata.number("done", done);
  const bool same = metadata.text("fingerprint") == fingerprint;
  if (!metadata.sound())
    return fault(core::ErrorCode::malformed_input, "is not a saved state of a training; remove it", name);
  if (!same) {
    return fault(core::ErrorCode::invalid_argument,
                 "is the state of a training with another recipe or other data; remove it, or leave out --resume",
                 name);
  }
  state.done = done != 0;
  state.training.weights = taken(*file, kWeights);
  state.training.first_moment = taken(*file, kFirst);
  state.training.second_moment = taken(*file, kSecond);
  state.best = taken(*file, kBest);
  return state;
}

core::Result<std::optional<RunState>> load_state(const std::string& path, std::string_view fingerprint) {
  if (!std::filesystem::exists(path)) return std::optional<RunState>();
  const auto bytes = core::read_file(path);
  if (!bytes) return bytes.error();
  auto state = parse_state(*bytes, fingerprint, path);
  if (!state) return std::move(state).error();
  return std::optional<RunState>(*std::move(state));
}

core::Status save_state(const RunState& state, std::string_view fingerprint, const std::string& path) {
  return core::write_file(path, write_state(state, fingerprint));
}

}  // namespace gpumem::train
