#include "launchers.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "command_words.hpp"
#include "gpumem/core/bytes.hpp"

namespace gpumem::trainer_files {

namespace {
namespace launchers_detail {

/// Settings without a value, with a space between them; all others take one.
constexpr std::string_view kTorchrunSwitches = " standalone no_python run_path m module ";
constexpr std::string_view kAccelerateSwitches =
    " multi_gpu cpu use_deepspeed use_fsdp use_megatron_lm use_xpu use_parallelism_config quiet q tpu no_tpu_cluster "
    "tpu_use_cluster tpu_use_sudo debug m module no_python enable_cpu_affinity dynamo_use_dynamic "
    "dynamo_use_fullgraph ipex same_network ";
constexpr std::string_view kDeepSpeedSwitches =
    " module no_python no_local_rank no_ssh no_ssh_check force_multi save_pid elastic_training bind_cores_to_rank ";

constexpr std::array<std::string_view, 6> kWrappers = {"env", "nohup", "exec", "time", "sudo", "command"};
constexpr std::array<std::string_view, 4> kRunners = {"uv", "poetry", "pixi", "rye"};  // "uv run"

bool is_one_of(std::span<const std::string_view> names, std::string_view word) {
  return std::find(names.begin(), names.end(), word) != names.end();
}

bool is_switch(std::string_view switches, const std::string& key) {
  return switches.find(" " + key + " ") != std::string_view::npos;
}

/// CUDA_VISIBLE_DEVICES=0,1
bool is_variable(std::string_view word) {
  const std::size_t equals = word.find('=');
  if (equals == std::string_view::npos || equals == 0) return false;
  return std::all_of(word.begin(), word.begin() + static_cast<std::ptrdiff_t>(equals), [](char byte) {
    return (byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9') || byte == '_';
  });
}

std::size_t read_words(std::span<const std::string> words, std::size_t at, std::string_view switches,
                       Setting& settings) {
  while (at < words.size() && words[at].starts_with('-')) {
    const std::string_view word = words[at++];
    if (word == "--") break;
    const std::size_t equals = word.find('=');
    std::string key(word.substr(0, equals));
    key.erase(0, key.find_first_not_of('-'));
    std::replace(key.begin(), key.end(), '-', '_');
    if (equals != std::string_view::npos) put_setting(settings, key, setting_of_word({}, word.substr(equals + 1)));
    else if (is_switch(switches, key)) put_setting(settings, key, setting_of_word({}, "true"));
    else if (at < words.size()) put_setting(settings, key, setting_of_word({}, words[at++]));
  }
  return at;
}

/// "python3.11 -u -m torch.distributed.run": behind python, and its own options but -m.
std::size_t behind_python(std::span<const std::string> words, std::size_t at) {
  ++at;
  while (at < words.size() && words[at].starts_with('-') && words[at] != "-m") {
    at += words[at] == "-W" || words[at] == "-X" ? 2 : 1;
  }
  return std::min(at, words.size());
}

std::size_t behind_environment(std::span<const std::string> words, Setting& environment) {
  std::size_t at = 0;
  for (; at < words.size(); ++at) {
    const std::string_view word = words[at];
    if (is_variable(word)) {
      const std::size_t equals = word.find('=');
      Setting value = setting_of_word({}, word.substr(equals + 1));
      value.key = word.substr(0, equals);
      environment.items.push_back(std::move(value));
    } else if (at + 1 < words.size() && words[at + 1] == "run" && is_one_of(kRunners, word)) {
      ++at;
    } else if (!is_one_of(kWrappers, word)) {
      break;
    }
  }
  return at;
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
  return launchers_detail::read_words(words, at, launchers_detail::kTorchrunSwitches, settings);
}

LauncherWords read_launcher(std::span<const std::string> words) {
  namespace detail = launchers_detail;
  LauncherWords read;
  read.environment.kind = read.settings.kind = Setting::Kind::object;
  std::size_t at = detail::behind_environment(words, read.environment);
  const auto word = [&](std::size_t offset) {
    return at + offset < words.size() ? std::string_view(words[at + offset]) : std::string_view();
  };
  const auto launch = [&](Launcher launcher, std::size_t from, std::string_view switches) {
    read.launcher = launcher;
    at = detail::read_words(words, from, switches, read.settings);
  };
  if (base_name(word(0)).starts_with("python")) at = detail::behind_python(words, at);
  const std::size_t module = word(0) == "-m" ? 1 : 0;
  const std::string_view name = base_name(word(module));
  if (name == "torchrun" || name == "torch.distributed.run" || name == "torch.distributed.launch") {
    launch(Launcher::torchrun, at + module + 1, detail::kTorchrunSwitches);
  } else if ((name == "accelerate" && word(module + 1) == "launch") || name == "accelerate.commands.launch") {
    launch(Launcher::accelerate, at + module + (name == "accelerate" ? 2 : 1), detail::kAccelerateSwitches);
  } else if (name == "deepspeed") {
    launch(Launcher::deepspeed, at + module + 1, detail::kDeepSpeedSwitches);
  } else {
    at += module;
  }
  if (base_name(word(0)).starts_with("python")) at = detail::behind_python(words, at);  // --no-python python
  if (word(0) == "-m") ++at;
  read.begin = std::min(at, words.size());
  return read;
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
  const Setting* const visible = environment.field("CUDA_VISIBLE_DEVICES");
  if (launcher != Launcher::none && visible != nullptr && detail::listed(visible->word) > 0) {
    return detail::times(detail::listed(visible->word), 1, "CUDA_VISIBLE_DEVICES");
  }
  return {};
}

}  // namespace gpumem::trainer_files
