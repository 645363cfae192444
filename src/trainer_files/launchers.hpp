// Input: the words of a command, from the launcher on.
// Output: what the launcher itself is told, and where the program begins that it starts.
// Source: as of launch_command.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "gpumem/posttrain/launch.hpp"
#include "setting.hpp"

namespace gpumem::trainer_files {

using posttrain::Launcher;

/// As of posttrain::LauncherWords, with values as formats read them.
struct LauncherWords {
  Launcher launcher = Launcher::none;
  Setting environment;    ///< an object: NAME=value before the command
  Setting settings;       ///< an object: of the launcher, '-' of its keys as '_'
  std::size_t begin = 0;  ///< the program's first word; the number of words: there is none
};

/// posttrain::read_launcher() of the words.
[[nodiscard]] LauncherWords read_launcher(std::span<const std::string> words);
/// The settings of torchrun in front of a program, from the word `at` on, as `tune run` takes them too; returns where
/// they end.
[[nodiscard]] std::size_t read_torchrun_words(std::span<const std::string> words, std::size_t at, Setting& settings);

/// accelerate's settings: its file (an object, or nothing), with the words of `accelerate launch` over it, under the
/// keys that the file has for them.
[[nodiscard]] Setting accelerate_settings(const Setting& file, const Setting& words);

/// Where `accelerate config` keeps its file: by HF_HOME, XDG_CACHE_HOME or HOME, those of the command before those of
/// the process; empty: nobody knows. Source: accelerate 1.2, commands/config/config_args.py (cache_dir).
[[nodiscard]] std::string accelerate_folder(const Setting& environment,
                                            const std::function<std::string(const std::string&)>& process);

/// How many GPUs a variable of the environment shows; 0: none says.
[[nodiscard]] std::int64_t visible_gpus(const Setting& environment);

/// How many GPUs take part.
struct RankCount {
  std::int64_t gpus = 1;
  std::string from;  ///< "num_processes"; empty: nothing says how many, and 1 is taken
};
/// `settings`: as of accelerate_settings() where accelerate starts the program. Counts that are none of 1 to 2^20 are
/// taken as not given.
[[nodiscard]] RankCount rank_count(Launcher launcher, const Setting& settings, const Setting& environment);

}  // namespace gpumem::trainer_files
