// gpumem-train: trains a model that estimates memory, from a recipe and measured runs.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <array>
#include <csignal>
#include <cstdio>
#include <exception>

#include "train_command.hpp"

namespace {

using namespace gpumem;
using namespace gpumem::train;

constexpr int kInterrupted = 130;  // as shells say about SIGINT

volatile std::sig_atomic_t interrupted = 0;

extern "C" void on_interrupt(int) { interrupted = 1; }

int report_error(const core::Error& error) {
  std::fprintf(stderr, "gpumem-train: error: %s\n", core::to_string(error).c_str());
  return core::exit_code(error.code);
}

std::string run_name(const Progress& progress) {
  if (progress.run + 1 == progress.runs) return "final model";
  return "fold " + std::to_string(progress.run + 1) + " of " + std::to_string(progress.runs - 1);
}

/// Shows how far the training has come: a bar on a terminal, else a line a run.
class ProgressLine {
 public:
  explicit ProgressLine(bool quiet) : quiet_(quiet), bar_(isatty(STDERR_FILENO) != 0) {}

  void show(const Progress& progress) const {
    if (quiet_) return;
    if (bar_) show_bar(progress);
    else if (progress.run_done) {
      std::fprintf(stderr, "%s: %lld epochs, loss %.4g\n", run_name(progress).c_str(),
                   static_cast<long long>(progress.epoch), progress.training_loss);
    }
  }
  void clear() const {
    if (bar_ && !quiet_) std::fprintf(stderr, "\r\033[K");
  }

 private:
  static void show_bar(const Progress& progress) {
    constexpr std::int64_t kWidth = 30;
    const std::int64_t all = progress.runs * progress.epochs;
    const std::int64_t full = kWidth * (progress.run * progress.epochs + progress.epoch) / all;
    const std::string bar =
        std::string(static_cast<std::size_t>(full), '#') + std::string(static_cast<std::size_t>(kWidth - full), '.');
    std::fprintf(stderr, "\r\033[K[%s] %s, epoch %lld of %lld, loss %.4g", bar.c_str(), run_name(progress).c_str(),
                 static_cast<long long>(progress.epoch), static_cast<long long>(progress.epochs),
                 progress.training_loss);
  }

  bool quiet_;
  bool bar_;
};

void add_options(CLI::App& app, TrainerOptions& options) {
  app.add_option("recipe", options.recipe, "what to train, and how (JSON)")->required();
  app.add_option("--data", options.data,
                 "a table of measured runs or of features (CSV), or random:KIND:COUNT:SEED[:BIN_MIB]; may be repeated")
      ->required()
      ->allow_extra_args(false);
  app.add_option("-o,--out", options.out, "the model folder to write")->required();
  app.add_option("--summaries", options.summaries, "folder with the summaries of models that a table only names");
  app.add_option("--gpu", options.gpu, "profile for random jobs and for log_ratio")->capture_default_str();
  app.add_option("--software", options.software, "software stack of random jobs; default: the profile's first");
  app.add_option("--folds", options.folds, "instead of the recipe's")->check(CLI::Range(2, 100));
  app.add_option("--seed", options.seed, "instead of the recipe's");
  app.add_option("--predictions", options.predictions, "write what cross-validation predicts of each job to this CSV");
  app.add_flag("--resume", options.resume, "go on where an interrupted training stopped");
  app.add_option("--save-every", options.save_every, "epochs between two states to go on from")
      ->capture_default_str()
      ->check(CLI::Range(1, 1'000'000));
}

int run(int argc, char** argv) {
  CLI::App app("Trains a model that estimates memory: cross-validates it by nets, and writes its folder with a card.",
               "gpumem-train");
  TrainerOptions options;
  bool quiet = false;
  std::int64_t stop_after = 0;
  add_options(app, options);
  app.add_flag("--quiet", quiet, "no progress");
  app.add_option("--stop-after", stop_after, "stop after this many epochs in all, as Ctrl-C does");
  app.footer("Ctrl-C saves the state; the same command with --resume goes on from it, to the very same weights.");
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& asked) {  // --help
    return app.exit(asked);
  } catch (const CLI::ParseError& wrong) {
    std::fprintf(stderr, "gpumem-train: error: %s; see gpumem-train --help\n", wrong.what());
    return core::exit_code(core::ErrorCode::invalid_argument);
  }
  const ProgressLine line(quiet);
  std::int64_t epochs = 0;
  options.on_epoch = [&](const Progress& progress) {
    line.show(progress);
    return ++epochs != stop_after && interrupted == 0;
  };
  options.say = [&](const std::string& text) {
    if (!quiet) std::fprintf(stderr, "%s\n", text.c_str());
  };
  std::signal(SIGINT, on_interrupt);
  const auto outcome = run_trainer(options);
  line.clear();
  if (!outcome) return report_error(outcome.error());
  if (outcome->empty()) {
    std::fprintf(stderr, "gpumem-train: stopped; the same command with --resume goes on\n");
    return kInterrupted;
  }
  std::printf("%s", outcome->c_str());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const int code = run(argc, argv);
    if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
    return report_error({core::ErrorCode::unreadable_file, "standard output cannot be written", {}});
  } catch (const std::exception& error) {  // libtorch throws; memory may run out
    std::fprintf(stderr, "gpumem-train: error: %s\n", error.what());
    return core::exit_code(core::ErrorCode::overflow);
  }
}
