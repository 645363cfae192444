#include "card.hpp"

#include <array>
#include <cmath>
#include <cstdio>
#include <filesystem>

#include "gpumem/core/bytes.hpp"

namespace gpumem::train {

namespace {

std::string count(std::int64_t value) { return core::with_separators(value); }

std::string text_of(const char* format, double value) {
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), format, value);
  return text.data();
}
std::string percent(double share) { return text_of("%.1f %%", 100.0 * share); }
std::string figure(double value) { return text_of("%.4g", value); }
std::string edge(double mib) { return mib == std::floor(mib) ? count(static_cast<std::int64_t>(mib)) : figure(mib); }

std::string file_of(const Source& source) {
  return source.name.starts_with("random:") ? source.name : std::filesystem::path(source.name).filename().string();
}

std::string provenance(const ml::ModelConfig& model, std::string_view key) {
  for (const auto& [name, text] : model.provenance) {
    if (name == key) return text;
  }
  return {};
}

std::int64_t rows_of(const CardFacts& facts) {
  std::int64_t rows = 0;
  for (const Source* source : facts.sources) rows += static_cast<std::int64_t>(source->rows.size());
  return rows;
}

std::string title(const CardFacts& facts) {
  const std::string data = provenance(*facts.model, "data");
  std::string text = "# " + facts.model->name + ": trained on " + count(rows_of(facts)) + " jobs";
  if (facts.model->nets != ml::NetKind::any) {
    text += " of kind " + std::string(model::name_of(ml::kNetKinds, facts.model->nets));
  }
  return text + (data.empty() ? "" : ", " + data) + "\n\n";
}

std::string row(const std::vector<std::string>& cells) {
  std::string text = "|";
  for (const std::string& cell : cells) text += " " + cell + " |";
  return text + "\n";
}

std::string rule(std::size_t columns) {
  std::string text = "|";
  for (std::size_t column = 0; column < columns; ++column) text += "---|";
  return text + "\n";
}

std::string bins_table(const std::vector<Score>& scores) {
  std::string text =
      row({"", "jobs", "right bin", "at most one away", "underestimated", "most frequent bin"}) + rule(6);
  for (const Score& score : scores) {
    text += row({score.of, count(score.rows), percent(score.accuracy), percent(score.within_one),
                 percent(score.underestimated), percent(score.majority)});
  }
  const Score& all = scores.front();
  text +=
      "\nUnderestimated: predicted in a bin below the true one. The last column is the share that is right if one "
      "always predicts the most frequent bin.";
  if (all.out_of_memory > 0) {
    text += " Of " + count(all.out_of_memory) + " runs that ran out of memory, " + count(all.caught) +
            " are predicted in the last bin.";
  }
  return text + "\n";
}

std::string edges_text(const ml::Head& head, std::size_t bin) {
  return edge(head.edges_mib[bin]) + " to " + edge(head.edges_mib[bin + 1]);
}

std::string confusion_table(const CardFacts& facts) {
  const ml::Head& head = facts.model->head;
  std::vector<std::string> header = {"true bin, " + (head.of.empty() ? std::string("MiB") : head.of)};
  for (std::size_t bin = 0; bin < facts.confusion.size(); ++bin) header.push_back(edges_text(head, bin));
  std::string text = "\nThe predicted bin, by the true one:\n\n" + row(header) + rule(header.size());
  for (std::size_t bin = 0; bin < facts.confusion.size(); ++bin) {
    std::vector<std::string> cells = {edges_text(head, bin)};
    for (const std::int64_t said : facts.confusion[bin]) cells.push_back(count(said));
    text += row(cells);
  }
  return text;
}

std::string values_table(const ml::Head& head, const std::vector<Score>& scores) {
  std::string text = row({"", "jobs", "output", "mean absolute error", "median", "target at most output"}) + rule(6);
  for (const Score& score : scores) {
    for (std::size_t output = 0; output < head.names.size(); ++output) {
      text += row({score.of, count(score.rows), head.names[output], figure(score.absolute_error[output]),
                   figure(score.median_absolute_error[output]), percent(score.covered[output])});
    }
  }
  return text;
}

std::string mixture_table(const std::vector<Score>& scores) {
  std::string text = row({"", "jobs", "mean relative error", "median", "right class of 8,000 MiB", "covered by upper",
                          "upper / measured", "replay: mean", "median", "right class"}) +
                     rule(10);
  for (const Score& score : scores) {
    const datasets::Accuracy& with = *score.corrected;
    const datasets::Accuracy& without = score.uncorrected;
    text += row({score.of, count(score.rows), percent(with.relative_error.mean), percent(with.relative_error.median),
                 percent(with.right_class), percent(with.covered), figure(with.upper_ratio),
                 percent(without.relative_error.mean), percent(without.relative_error.median),
                 percent(without.right_class)});
  }
  return text + "\nAll figures are of device memory. The last three columns are the replay without correction.\n";
}

std::string accuracy(const CardFacts& facts) {
  std::string text = "## Accuracy\n\nBy cross-validation with " + std::to_string(facts.recipe->training.folds) +
                     " folds: each job is predicted by a model that saw neither it nor another job of its net.\n\n";
  if (facts.model->head.spread > 0.0) return text + mixture_table(facts.scores);
  if (facts.model->head.edges_mib.empty()) return text + values_table(facts.model->head, facts.scores);
  return text + bins_table(facts.scores) + confusion_table(facts);
}

std::string left_out(const Source& source) {
  std::string text;
  const auto add = [&](std::int64_t rows, const char* what) {
    if (rows > 0) text += (text.empty() ? "; left out: " : ", ") + count(rows) + " " + what;
  };
  add(source.failed, "that cannot be read");
  add(source.other_nets, "of other kinds of nets");
  add(source.unmeasured, "without a measurement");
  add(source.several_gpus, "on several GPUs");
  add(source.out_of_memory, "out of memory");
  return text;
}

std::string data(const CardFacts& facts) {
  std::string text = "\n## Data\n\n";
  for (const Source* source : facts.sources) {
    text += "- `" + file_of(*source) + "`: " + count(static_cast<std::int64_t>(source->rows.size())) + " jobs" +
            left_out(*source) + "\n";
  }
  for (const auto& [key, value] : facts.model->provenance) text.append("- ").append(key).append(": " + value + "\n");
  return text;
}

std::string training(const CardFacts& facts) {
  std::string text = "\n## Training\n\n```sh\n" + facts.command + "\n```\n\n";
  text += "Software: " + facts.software + ". Seed " + std::to_string(facts.recipe->training.seed) +
          ". The final model is trained on ";
  text += facts.recipe->training.early_stopping_patience > 0
              ? "all jobs except " + percent(facts.recipe->training.validation_share) + ", which decide when to stop, "
              : "all jobs, ";
  return text + "for " + count(facts.epochs.back()) + " epochs.\n";
}

std::string network(const ml::ModelConfig& model) {
  std::size_t members = 0;
  std::size_t encoders = 0;
  for (const ml::BranchShape& branch : model.network.branches) {
    members += branch.members.size();
    encoders += branch.encoder ? 1 : 0;
  }
  std::int64_t weights = 0;
  for (const ml::TensorSpec& tensor : ml::tensors_of(model.network)) {
    std::int64_t elements = 1;
    for (const std::int64_t size : tensor.shape) elements *= size;
    weights += elements;
  }
  std::string text = "\n## Network\n\n" + std::to_string(members) + " perceptrons";
  if (encoders > 0) text += " over " + std::to_string(encoders) + " Transformer encoders of the layers";
  return text + ", " + count(weights) + " weights, " + std::to_string(model.features.size()) +
         " features, each transformed as `config.json` says and standardised.\n";
}

}  // namespace

std::string card_of(const CardFacts& facts) {
  return title(facts) + accuracy(facts) + data(facts) + training(facts) + network(*facts.model);
}

}  // namespace gpumem::train
