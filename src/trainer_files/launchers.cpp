#include "launchers.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "command_words.hpp"
#include "gpumem/core/bytes.hpp"

namespace gpumem::trainer_files {

namespace {
namespace launchers_detail {

/// An object of them; "a.b" is b within a.
Setting object_of(std::span<const posttrain::LaunchSetting> settings, bool nested) {
  Setting object;
  object.kind = Setting::Kind::object;
  for (const auto& [key, word] : settings) {
    if (nested) put_setting(object, key, setting_of_word({}, word));
    else object.items.push_back(setting_of_word(key, word));
  }
  return object;
}

constexpr std::int64_t kMostRanks = std::int64_t{1} << 20;

std::optional<std::int64_t> count_of(std::string_view word) {
  const std::optional<std::int64_t> value = core::parse_whole(word);
  return value && *value >= 1 && *value <= kMostRanks ? value : std::nullopt;
}

std::optional<std::int64_t> count_at(const Setting& settings, std::string_view key) {
  const Setting* const found = settings.field(key);
  if (found == nullptr) return std::nullopt;
  return count_of(std::string_view(found->word).substr(0, found->word.find(':')));  // "1:4" nodes: at least 1
}

/// "0,1,3": three.
std::int64_t listed(std::string_view list) {
  return list.empty() ? 0 : 1 + static_cast<std::int64_t>(std::count(list.begin(), list.end(), ','));
}

/// "host1:0,1@host2": the GPUs that it lists; 0: a host without a list.
std::int64_t included(std::string_view hosts) {
  std::int64_t gpus = 0;
  while (!hosts.empty()) {
    const std::size_t end = std::min(hosts.find('@'), hosts.size());
    const std::size_t colon = hosts.substr(0, end).find(':');
    if (colon == std::string_view::npos) return 0;
    gpus += listed(hosts.substr(colon + 1, end - colon - 1));
    hosts.remove_prefix(std::min(end + 1, hosts.size()));
  }
  return gpus;
}

RankCount times(std::int64_t each, std::int64_t nodes, std::string from) {
  return {std::min(each * nodes, kMostRanks), std::move(from)};
}

}  // namespace launchers_detail
}  // namespace

std::size_t read_torchrun_words(std::span<const std::string> words, std::size_t at, Setting& settings) {
  std::vector<posttrain::LaunchSetting> read;
  const std::size_t end = posttrain::read_torchrun_words(words, at, read);
  lay_over(settings, launchers_detail::object_of(read, true));
  return end;
}

LauncherWords read_launcher(std::span<const std::string> words) {
  const posttrain::LauncherWords read = posttrain::read_launcher(words);
  using launchers_detail::object_of;
  return {read.launcher, object_of(read.environment, false), object_of(read.settings, true), read.begin};
}

Setting accelerate_settings(const Setting& file, const Setting& words) {
  Setting all = file;
  if (all.kind != Setting::Kind::object) all = {Setting::Kind::object, {}, {}, {}, 0};
  for (const Setting& field : words.items) {
    std::string path = field.key;
    if (path.starts_with("fsdp_")) path.insert(0, "fsdp_config.");
    else if (path == "zero_stage" || path.starts_with("offload_") || path == "deepspeed_config_file") {
      path.insert(0, "deepspeed_config.");
    }
    put_setting(all, path, field);
  }
  const auto is_on = [&](std::string_view key) {
    const Setting* const found = words.field(key);
    return found != nullptr && found->word == "true";
  };
  const bool deepspeed =
      is_on("use_deepspeed") || words.field("zero_stage") != nullptr || words.field("deepspeed_config_file") != nullptr;
  if (deepspeed) put_setting(all, "distributed_type", setting_of_word({}, "DEEPSPEED"));
  if (is_on("use_fsdp")) put_setting(all, "distributed_type", setting_of_word({}, "FSDP"));
  return all;
}

std::string accelerate_folder(const Setting& environment,
                              const std::function<std::string(const std::string&)>& process) {
  const auto value_of = [&](const char* name) {
    const Setting* const given = environment.field(name);
    return given != nullptr ? given->word : process(name);
  };
  std::string home = value_of("HF_HOME");
  if (home.empty()) {
    const std::string cache = value_of("XDG_CACHE_HOME");
    home = (cache.empty() ? "~/.cache" : cache) + "/huggingface";
  }
  if (home.starts_with("~/")) {
    const std::string user = value_of("HOME");
    if (user.empty()) return {};
    home.replace(0, 1, user);
  }
  return home + "/accelerate";
}

std::int64_t visible_gpus(const Setting& environment) {
  const Setting* const visible = environment.field("CUDA_VISIBLE_DEVICES");
  return visible == nullptr ? 0 : launchers_detail::listed(visible->word);
}

RankCount rank_count(Launcher launcher, const Setting& settings, const Setting& environment) {
  namespace detail = launchers_detail;
  if (launcher == Launcher::accelerate) {
    if (const auto all = detail::count_at(settings, "num_processes")) return {*all, "num_processes"};
  } else if (launcher == Launcher::torchrun) {
    const std::int64_t nodes = detail::count_at(settings, "nnodes").value_or(1);
    if (const auto each = detail::count_at(settings, "nproc_per_node")) {
      return detail::times(*each, nodes, "nproc_per_node");
    }
  } else if (launcher == Launcher::deepspeed) {
    const std::int64_t nodes = detail::count_at(settings, "num_nodes").value_or(1);
    if (const auto each = detail::count_at(settings, "num_gpus")) return detail::times(*each, nodes, "num_gpus");
    const Setting* const include = settings.field("include");
    const std::int64_t gpus = include == nullptr ? 0 : detail::included(include->word);
    if (gpus > 0) return detail::times(gpus, 1, "include");
  }
  const std::int64_t nodes = detail::count_at(environment, "NNODES").value_or(1);
  if (const auto each = detail::count_at(environment, "NPROC_PER_NODE")) {
    return detail::times(*each, nodes, "NPROC_PER_NODE");
  }
  const std::int64_t visible = visible_gpus(environment);
  if (launcher != Launcher::none && visible > 0) return detail::times(visible, 1, "CUDA_VISIBLE_DEVICES");
  return {};
}

}  // namespace gpumem::trainer_files
