#include "report.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "cells.hpp"

namespace gpumem::accuracy {

namespace {

using datasets::Accuracy;
using datasets::CappedAccuracy;

constexpr std::string_view kIntroduction =
    "# Accuracy\n\n"
    "Written by `gpumem_accuracy`. Errors are relative to the measured figure. *bin*: the share of runs whose expected "
    "figure falls into the measured one's class of 8,000 MiB. *below*: the share with an expected figure below the "
    "measured one. *covered*: the share with measured <= `upper`; *upper / measured*: what `upper` reserves for each "
    "MiB "
    "used, on average. *OOM caught*: of the runs that were out of memory, those that the estimate predicted; *false "
    "alarms*: runs that fitted, though the estimate said otherwise. An estimator that publishes no range has its "
    "expected "
    "figure as `upper`.\n\n"
    "xMem's metrics are defined in `include/gpumem_datasets/accuracy.hpp`: *MRE*, the median relative error of runs "
    "that "
    "fitted; *PEF*, the share of runs whose out-of-memory verdict is wrong or that would fail with no more memory than "
    "the estimate (if that is below what was measured: a strict rule, for the allocator may give back its cache); "
    "*MCP*, "
    "the memory that is conserved a run against reserving the whole GPU, where a wrong verdict costs the whole GPU. "
    "The "
    "cap is either the expected figure or `upper`, which is what a scheduler should reserve. *PEF when repeated*: of "
    "runs that were repeated under the cap by those who published them.\n\n"
    "Published estimates (in italics) are those that the table cites for the same runs. Where one predicted that a run "
    "would not fit it gave no figure: its errors are over the runs that are counted in its row.\n";

std::string name_of(const Verdict& verdict) {
  if (verdict.published) return "*" + plain(verdict.estimator) + "*";
  return "`" + verdict.estimator + "`" + (verdict.trained_on_it.empty() ? "" : " †");
}

std::string errors_row(const Verdict& verdict) {
  const Accuracy& accuracy = verdict.accuracy;
  const bool any = accuracy.fitted > 0;
  const auto share = [&](double value, int decimals = 1) { return any ? percent(value, decimals) : ""; };
  const bool ranged = any && verdict.ranged;
  return row({name_of(verdict), whole(static_cast<double>(accuracy.fitted)), share(accuracy.relative_error.mean, 2),
              share(accuracy.relative_error.median, 2), share(accuracy.relative_error.p90, 2),
              share(accuracy.relative_error.p99, 2), share(accuracy.signed_relative_error, 2),
              share(accuracy.right_class), share(accuracy.underestimated), ranged ? percent(accuracy.covered, 1) : "",
              ranged ? decimal(accuracy.upper_ratio, 3) : "",
              accuracy.out_of_memory > 0 ? whole(static_cast<double>(accuracy.caught)) + " of " +
                                               whole(static_cast<double>(accuracy.out_of_memory))
                                         : "",
              whole(static_cast<double>(accuracy.false_alarms)), whole(static_cast<double>(verdict.failed))});
}

std::string errors_table(const std::vector<Verdict>& verdicts) {
  constexpr std::size_t kColumns = 14;
  std::string text = row({"estimator", "fitted", "mean", "median", "p90", "p99", "signed", "bin", "below", "covered",
                          "upper / measured", "OOM caught", "false alarms", "no answer"}) +
                     rule(kColumns, 1);
  for (const Verdict& verdict : verdicts) text += errors_row(verdict);
  return text;
}

/// "11.2 GiB (28 %)"
std::string conserved_with_share(const CappedAccuracy& capped) {
  constexpr double kMibInGib = 1024.0;
  return decimal(capped.conserved_mib / kMibInGib, 2) + " GiB (" + percent(capped.conserved_share, 0) + ")";
}

std::string capped_row(const Verdict& verdict) {
  const CappedAccuracy& expected = verdict.at_expected;
  const CappedAccuracy& upper = verdict.at_upper;
  const bool two = verdict.ranged;
  return row({name_of(verdict), whole(static_cast<double>(expected.runs)), percent(expected.median_error),
              percent(expected.failure, 1), two ? percent(upper.failure, 1) : "",
              expected.failure_when_repeated ? percent(*expected.failure_when_repeated, 1) : "",
              conserved_with_share(expected), two ? conserved_with_share(upper) : ""});
}

std::string capped_table(const std::vector<Verdict>& verdicts) {
  constexpr std::size_t kColumns = 8;
  std::string text = row({"estimator", "runs", "MRE", "PEF at expected", "PEF at `upper`", "PEF when repeated",
                          "MCP at expected", "MCP at `upper`"}) +
                     rule(kColumns, 1);
  for (const Verdict& verdict : verdicts) {
    if (verdict.at_expected.runs > 0) text += capped_row(verdict);
  }
  return text;
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "`" : ", `") + name + "`";
  return text;
}

/// Which figures of the profiles were fitted to runs of the set's source, as these figures say themselves.
std::string fitted_profiles(const Data& data, const DataSet& set) {
  std::string text;
  const auto add = [&](const GpuProfile& gpu, std::string_view what, const std::string& source) {
    if (set.source.empty() || source.find("fitted") == std::string::npos || !mentions(source, set.source)) return;
    text += "- " + plain(gpu.name) + ": " + std::string(what) + " that the replay uses: " + plain(source) + ".\n";
  };
  for (const std::string& name : set.gpus) {
    const auto gpu = data.gpus.find(name);
    if (gpu == data.gpus.end()) continue;
    add(gpu->second, "the rule of workspaces", gpu->second.convolution_workspace.source);
    for (const device::ContextFigure& context : gpu->second.contexts) add(gpu->second, "the context", context.source);
  }
  return text;
}

std::string count_of_runs(std::int64_t count) {
  return whole(static_cast<double>(count)) + (count == 1 ? " run" : " runs");
}

/// What has no answer, and why: one line for all estimators that have the same reason.
std::string failures(const std::vector<Verdict>& verdicts) {
  std::vector<std::pair<std::string, std::vector<std::string>>> reasons;
  for (const Verdict& verdict : verdicts) {
    if (verdict.failed == 0 || verdict.first_failure.empty()) continue;
    const std::string reason =
        "no answer for " + count_of_runs(verdict.failed) + "; the first: " + plain(verdict.first_failure);
    auto known = std::find_if(reasons.begin(), reasons.end(), [&](const auto& each) { return each.first == reason; });
    if (known == reasons.end()) known = reasons.insert(reasons.end(), {reason, {}});
    known->second.push_back(verdict.estimator);
  }
  std::string text;
  for (const auto& [reason, estimators] : reasons) text += "- " + joined(estimators) + ": " + reason + "\n";
  return text;
}

/// What must be known to read the tables of a set.
std::string notes(const Data& data, const SetVerdicts& verdicts) {
  std::string text = fitted_profiles(data, *verdicts.set);
  for (const Verdict& verdict : verdicts.verdicts) {
    if (!verdict.trained_on_it.empty()) {
      text += "- † `" + verdict.estimator + "`: " + joined(verdict.trained_on_it) +
              " is trained on these runs, or on others of the same set: see its card in `models/` for "
              "cross-validation. What stands here is how well it remembers, not how accurate it is.\n";
    }
    if (verdict.out_of_domain > 0) {
      text += "- `" + verdict.estimator + "`: " + whole(static_cast<double>(verdict.out_of_domain)) + " of " +
              whole(static_cast<double>(verdict.judged.size())) +
              " runs are unlike those that its model was trained on, and the estimates say so.\n";
    }
  }
  std::vector<std::string> whole_estimates;
  for (const Verdict& verdict : verdicts.verdicts) {
    if (verdict.whole) whole_estimates.push_back(verdict.estimator);
  }
  if (!whole_estimates.empty()) {
    text += "- " + joined(whole_estimates) +
            ": do not tell what PyTorch's allocator holds; all that they expect is compared.\n";
  }
  return text + failures(verdicts.verdicts);
}

std::string heading(const SetVerdicts& verdicts) {
  const DataSet& set = *verdicts.set;
  std::string gpus;
  for (const std::string& gpu : set.gpus) gpus += (gpus.empty() ? "" : ", ") + plain(gpu);
  std::string text = "\n## " + plain(set.name) + "\n\n";
  text += count_of_runs(static_cast<std::int64_t>(set.runs.size()));
  if (set.known != nullptr) {
    text += ": " + std::string(set.known->what) + ", " + std::string(set.known->where);
  } else if (!set.source.empty()) {
    text += ": " + std::string(plural_of(set.kind)) + " of " + plain(set.source);
  }
  text += ". Measured: " + std::string(text_of(set.figure)) + ". Profiles: " + gpus + ".";
  if (set.several_gpus > 0) text += " Left out: " + count_of_runs(set.several_gpus) + " on several GPUs.";
  if (set.without_measurement > 0) {
    text += " Left out: " + count_of_runs(set.without_measurement) + " without a measurement.";
  }
  if (set.known != nullptr && !set.known->note.empty()) text += " " + std::string(set.known->note);
  return text + "\n\n";
}

}  // namespace

std::string_view text_of(std::optional<datasets::Figure> figure) {
  constexpr std::array<std::string_view, 4> kTexts = {"device (nvidia-smi)", "reserved by PyTorch's allocator",
                                                      "allocated, in live tensors", "growth of the device's use"};
  return figure ? kTexts.at(static_cast<std::size_t>(*figure)) : "several figures, as the table says";
}

std::string report_of(const Data& data, const std::vector<SetVerdicts>& all, const ReportFacts& facts) {
  std::string text(kIntroduction);
  if (!facts.picture.empty()) text += "\n![predicted against measured](" + facts.picture + ")\n";
  for (const SetVerdicts& verdicts : all) {
    text += heading(verdicts) + errors_table(verdicts.verdicts) + "\n" + capped_table(verdicts.verdicts);
    const std::string more = notes(data, verdicts);
    if (!more.empty()) text += "\n" + more;
  }
  return text;
}

}  // namespace gpumem::accuracy
