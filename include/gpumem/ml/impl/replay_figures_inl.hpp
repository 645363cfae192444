#pragma once

#include "gpumem/ml/replay_figures.hpp"

#include <algorithm>
#include <cmath>

#include "gpumem/device/workspace.hpp"

namespace gpumem::ml {

namespace replay_figures_detail {

GPUMEM_INLINE double mib(std::int64_t bytes) { return static_cast<double>(bytes) / 1048576.0; }

GPUMEM_INLINE std::array<double, kReplayFigures> figures_of(const analysis::JobRun& of_job) {
  std::array<double, kReplayFigures> figures{};
  const auto set = [&](ReplayFigure figure, double value) { figures[static_cast<std::size_t>(figure)] = value; };
  const analysis::AllocatorRun& run = of_job.run;
  set(ReplayFigure::device, mib(of_job.beside().expected.count() + run.peak_reserved));
  set(ReplayFigure::reserved, mib(run.peak_reserved));
  set(ReplayFigure::allocated, mib(run.peak_allocated));
  set(ReplayFigure::workspace, mib(run.at_peak[analysis::kWorkspaceCategory]));
  set(ReplayFigure::fragmentation, mib(run.peak_reserved - run.peak_allocated));
  set(ReplayFigure::context, mib(of_job.beside().expected.count()));
  set(ReplayFigure::fits, of_job.fits ? 1.0 : 0.0);
  set(ReplayFigure::retries, static_cast<double>(run.retries));
  return figures;
}

}  // namespace replay_figures_detail

GPUMEM_INLINE core::Result<std::array<double, kReplayFigures>> replay_figures(analysis::Analysis& analysis,
                                                                              const device::GpuProfile& gpu,
                                                                              Needs needs,
                                                                              const device::AllocatorOptions& options) {
  const core::Result<analysis::JobRun> by_rule = analysis.run(gpu, options);
  if (!by_rule) return by_rule.error();
  const auto source = analysis.source();
  if (!source) return source.error();
  std::array<double, kReplayFigures> figures = replay_figures_detail::figures_of(*by_rule);
  if (needs != Needs::variants || !source->convolves) return figures;
  const auto least = static_cast<double>(std::max<std::int64_t>(by_rule->run.peak_reserved, 1));
  device::GpuProfile varied = gpu;
  std::size_t figure = kFirstVariantFigure;
  for (const device::WorkspaceVariant& variant : device::workspace_variants()) {
    varied.convolution_workspace.variant = variant;
    const core::Result<analysis::JobRun> other = analysis.run(varied, options);
    if (!other) return other.error();
    figures[figure++] = std::log(static_cast<double>(other->run.peak_reserved) / least);
  }
  return figures;
}

GPUMEM_INLINE core::Status add_replay(JobFacts& facts, const FeatureReader& reader, analysis::Analysis& analysis,
                                      const device::GpuProfile& gpu, const device::AllocatorOptions& options) {
  if (!reader.needs(Needs::replay)) return core::Done{};
  const Needs needs = reader.needs(Needs::variants) ? Needs::variants : Needs::replay;
  const auto figures = replay_figures(analysis, gpu, needs, options);
  if (!figures) return figures.error();
  facts.replay = *figures;
  return core::Done{};
}

}  // namespace gpumem::ml
