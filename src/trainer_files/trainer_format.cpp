#include "trainer_format.hpp"

#include <algorithm>
#include <array>

#include "gpumem/core/bytes.hpp"
#include "gpumem/core/csv.hpp"
#include "gpumem/core/result.hpp"

namespace gpumem::trainer_files {

namespace {

/// Longer than any list of names; texts for people are shortened where they are said.
constexpr std::size_t kLongestWord = std::size_t{16} << 10;

/// Whether the setting says that something is not used.
bool is_off(const Setting& setting) {
  if (setting.kind == Setting::Kind::list || setting.kind == Setting::Kind::object) return setting.items.empty();
  constexpr std::array<std::string_view, 4> kOff = {"", "false", "0", "none"};
  if (std::find(kOff.begin(), kOff.end(), setting.word) != kOff.end()) return true;
  return setting.kind == Setting::Kind::real && setting.word.find_first_not_of("0.+-") == std::string::npos;
}

std::string joined(const Setting& list) {
  std::string text;
  for (const Setting& item : list.items) {
    if (text.size() > kLongestWord) break;
    text += (text.empty() ? "" : "+") + item.word;
  }
  return text;
}

/// Adapters on a checkpoint that its name says to be packed in four bits; AWQ's are held as GPTQ's are. Source:
/// transformers 4.51, integrations/awq.py; AutoAWQ 0.2, modules/linear/gemm.py (WQLinear_GEMM).
void want_stored_bits(TrainerReading& from) {
  const std::string_view model = from.job().model;
  const bool packed = model.ends_with("-AWQ") || model.ends_with("-GPTQ-Int4");
  const bool adapts = from.job().find("lora") != nullptr || from.job().find("peft") != nullptr;
  if (packed && adapts) from.want("quantize", "gptq-4bit", "model");
}

}  // namespace

const WantedOption* TrainerJob::find(std::string_view option) const {
  const auto found =
      std::find_if(options.begin(), options.end(), [&](const WantedOption& one) { return one.option == option; });
  return found == options.end() ? nullptr : &*found;
}

std::string usual_model(std::span<const UsualModel> rows, std::string_view text) {
  const auto row = std::ranges::find_if(rows, [&](const UsualModel& one) { return text.starts_with(one.key); });
  return row == rows.end() ? std::string() : std::string(row->model);
}

void read_into(const TrainerFormat& format, const Setting& root, TrainerJob& job) {
  TrainerReading reading(root, job);
  format.read(reading);
  want_stored_bits(reading);
  reading.finish();
}

const Setting* TrainerReading::at(std::string_view path) {
  for (std::size_t end = path.find('.'); end != std::string_view::npos; end = path.find('.', end + 1)) {
    parted_.emplace(path.substr(0, end));
  }
  known_.emplace(path);
  const Setting* const found = root_.at(path);
  if (found == nullptr || found->kind == Setting::Kind::null || found->word == "auto") return nullptr;
  return found;
}

std::optional<std::string> TrainerReading::word(std::string_view path) {
  const Setting* const plain = root_.at(path);
  if (plain != nullptr && plain->kind == Setting::Kind::object) parted_.emplace(path);
  if (plain != nullptr && plain->kind == Setting::Kind::object) return std::nullopt;
  const Setting* const found = at(path);
  if (found == nullptr) return std::nullopt;
  return found->kind == Setting::Kind::list ? joined(*found) : found->word;
}

bool TrainerReading::on(std::string_view path) {
  const std::string word = core::lower_case(this->word(path).value_or(""));
  return word == "true" || word == "yes" || word == "1";
}

bool TrainerReading::is_auto(std::string_view path) const {
  const Setting* const found = root_.at(path);
  return found != nullptr && found->word == "auto";
}

std::optional<std::int64_t> TrainerReading::whole(std::string_view path) {
  const auto text = word(path);
  return text ? core::parse_whole(*text) : std::nullopt;
}

void TrainerReading::want(std::string_view option, std::string value, std::string_view from) {
  WantedOption wanted{std::string(option), std::move(value), std::string(from), 0};
  if (const Setting* const setting = from.empty() ? nullptr : root_.at(from)) wanted.line = setting->line;
  const auto same = std::find_if(job_.options.begin(), job_.options.end(),
                                 [&](const WantedOption& one) { return one.option == option; });
  if (same == job_.options.end()) {
    job_.options.push_back(std::move(wanted));
  } else {
    *same = std::move(wanted);
  }
}

void read_made(TrainerReading& from, const Setting& made, void (*read)(TrainerReading& from)) {
  TrainerReading reading(made, from.job());
  read(reading);
  reading.finish();
  for (const Setting& field : from.root().items) from.know(field.key);
}

bool is_listed(std::span<const std::string_view> keys, std::string_view key) {
  return std::any_of(keys.begin(), keys.end(), [&](std::string_view one) {
    return one.ends_with('*') ? key.starts_with(one.substr(0, one.size() - 1)) : key == one;
  });
}

bool is_among(std::span<const std::string_view> names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

void TrainerReading::check(std::string_view path, std::string_view word, std::string_view known) {
  const core::Status fit = core::check_word(path, word, known);
  if (fit || job_.wrong) return;
  job_.wrong = fit.error();
  if (const Setting* const setting = root_.at(path)) job_.wrong->place.line = setting->line;
}

std::string TrainerReading::choice(std::string_view path, std::string_view known, std::string_view usual) {
  auto given = word(path);
  if (!given) return std::string(usual);
  check(path, *given, known);
  return *std::move(given);
}

void TrainerReading::take(std::string_view path, std::string_view option) {
  if (auto value = word(path)) want(option, *std::move(value), path);
}

void TrainerReading::not_modelled(std::string_view path, std::string_view usual) {
  const Setting* const found = at(path);
  if (found == nullptr || is_off(*found) || (!usual.empty() && found->word == usual)) return;
  std::string text(path);
  const std::string value = found->kind == Setting::Kind::list ? joined(*found) : found->word;
  if (!value.empty()) text += " " + value;
  job_.not_modelled.push_back(std::move(text));
}

void TrainerReading::name(std::string_view section, std::span<const std::string_view> keys) {
  for (const std::string_view key : keys) {
    if (!key.ends_with('*')) named_.emplace_back(section, key);
  }
}

std::string TrainerReading::nearest_in(std::string_view section, std::string_view key) const {
  std::vector<std::string_view> names;
  for (const auto& [owner, name] : named_) {
    if (owner == section) names.push_back(name);
  }
  // What was asked for, by its path.
  const std::string before = section.empty() ? std::string() : std::string(section) + ".";
  for (const std::set<std::string, std::less<>>* const asked : {&known_, &parted_}) {
    for (const std::string& path : *asked) {
      if (!path.starts_with(before)) continue;
      const std::string_view rest = std::string_view(path).substr(before.size());
      names.push_back(rest.substr(0, rest.find('.')));
    }
  }
  std::ranges::sort(names);
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return is_among(names, key) ? std::string() : core::did_you_mean(key, names);
}

void TrainerReading::without_effect(std::span<const std::string_view> keys) {
  name({}, keys);
  for (const Setting& field : root_.items) {
    const bool parted = field.kind == Setting::Kind::object && parted_.contains(field.key);
    if (!parted && is_listed(keys, field.key)) known_.insert(field.key);
  }
}

void TrainerReading::without_effect(std::span<const std::string_view> keys, std::string_view arguments) {
  name({}, keys);
  for (std::string_view rest = arguments; !rest.empty();) {
    const std::size_t end = std::min(rest.find(' '), rest.size());
    named_.emplace_back(std::string(), rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  for (const Setting& field : root_.items) {
    const bool parted = field.kind == Setting::Kind::object && parted_.contains(field.key);
    if (parted || !is_listed(keys, field.key)) continue;
    const std::string word = field.key + " ";
    const bool named = arguments.starts_with(word) || arguments.find(" " + word) != std::string_view::npos;
    if (named || is_among(keys, field.key)) known_.insert(field.key);
  }
}

void TrainerReading::without_effect_in(std::string_view section, std::span<const std::string_view> keys) {
  const Setting* const found = root_.at(section);
  parted_.emplace(section);
  name(section, keys);
  if (found == nullptr) return;
  for (const Setting& field : found->items) {
    if (is_listed(keys, field.key)) known_.insert(std::string(section) + "." + field.key);
  }
}

void TrainerReading::finish_in(const Setting& section, const std::string& path) {
  for (const Setting& field : section.items) {
    const std::string own = path.empty() ? field.key : path + "." + field.key;
    if (known_.contains(own) || field.kind == Setting::Kind::null) continue;
    if (!parted_.contains(own)) job_.unknown.push_back(own + nearest_in(path, field.key));
    else if (field.kind == Setting::Kind::object) finish_in(field, own);
  }
}

void TrainerReading::finish() { finish_in(root_, {}); }

}  // namespace gpumem::trainer_files
