// Input: the words of a command that starts a training: "torchrun --nproc-per-node 8 train.py --config x.yaml".
// Output: LaunchedJob: what the launcher says (ranks, precision, sharding), what the program's words and the files that
// they name say of the job, and which of these nobody can know.
// Source: torch 2.6 distributed/run.py; accelerate 1.2 commands/launch.py and commands/config/config_args.py; DeepSpeed
// 0.16 launcher/runner.py; axolotl 0.6 cli/main.py; LLaMA-Factory 0.9 cli.py and launcher.py; torchtune 0.5
// _cli/run.py; ms-swift 4 cli/main.py; trl 0.13 commands/cli.py.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "gpumem/core/result.hpp"
#include "trainer_format.hpp"

namespace gpumem::trainer_files {

/// Gives the text of a file that the command names.
using ReadCommandFile = std::function<core::Result<std::string>(const std::string& path)>;

/// Gives a variable of the environment; empty: it is not set.
using CommandVariable = std::function<std::string(const std::string& name)>;

/// Which of our questions the command is about.
enum class LaunchedProgram : std::uint8_t {
  training,       ///< LaunchedJob says the job
  server,         ///< an inference server; serve::read_server_command() reads `words`
  post_training,  ///< DPO, GRPO and the like; posttrain::launch_settings() reads `words`
};

struct LaunchedJob {
  LaunchedProgram program = LaunchedProgram::training;
  std::vector<std::string> words;  ///< of a server, from its program on; of post-training all
  TrainerJob job;                  ///< of a training
  std::string script;              ///< what is started: "train.py", "axolotl train"
  std::vector<std::string> files;  ///< those that were read
  bool known = false;              ///< whether words or files say how it trains; false: only the launcher is known
  std::int64_t gpus = 1;           ///< processes, one on each GPU
  std::string missing_deepspeed;   ///< DeepSpeed's file that the job names and that is not here; empty: none
  std::vector<std::string> notes;  ///< what the command leaves open, and what is taken for it, for people
};

/// Errors: invalid_argument for a command that starts with no launcher and no program that gpumem knows; those of
/// reading a file that the program cannot do without, naming it.
/// `variable`: tells where accelerate's own config is; without it none is looked for.
[[nodiscard]] core::Result<LaunchedJob> read_launch_command(std::span<const std::string> words,
                                                            const ReadCommandFile& read_file,
                                                            const CommandVariable& variable = {});
/// The same with the files and the environment of this machine.
[[nodiscard]] core::Result<LaunchedJob> read_launch_command(std::span<const std::string> words);

}  // namespace gpumem::trainer_files
