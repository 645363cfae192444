// Input: an EstimatedJob or an Error.
// Output: a table for people and JSON (schema 1) for programs.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "estimated_jobs.hpp"
#include "table.hpp"

namespace gpumem::cli {

/// {"schema": 1, "summary": ..., "job": ..., "gpu": ..., "estimates": [...]}
[[nodiscard]] nlohmann::ordered_json to_json(const EstimatedJob& estimated_job);

/// The same without "estimates".
[[nodiscard]] nlohmann::ordered_json head_json(const EstimatedJob& estimated_job);

/// One object of "estimates", without the estimator's name and time.
[[nodiscard]] nlohmann::ordered_json to_json(const MemoryEstimate& estimate);
[[nodiscard]] nlohmann::ordered_json to_json(const std::vector<estimate::Assumption>& assumed);

/// The library's words with its options as a command line has them: "`seq_length=512`" is "--seq 512".
[[nodiscard]] std::string said(std::string_view message);
/// The same of an error, with its place.
[[nodiscard]] std::string said(const Error& error);

/// What an estimate takes as given, a line each; the first is headed.
[[nodiscard]] std::string assumed_text(const MemoryEstimate& estimate);

/// {"code", "message", "file", "line", "element"}, without what is unknown.
[[nodiscard]] nlohmann::ordered_json to_json(const Error& error);

/// The same with the largest batch; the job has no "batch_size".
[[nodiscard]] nlohmann::ordered_json to_json(const EstimatedJob& estimated_job, std::string_view estimator,
                                             const Fit& fit, double seconds);

/// Two lines: what was read, and what the job is, but for what is looked for.
[[nodiscard]] std::string headline(const EstimatedJob& estimated_job, std::optional<Grows> looked_for = {});

/// The option of a job that says how large it is: "batch_size".
[[nodiscard]] std::string_view option_of(Grows grows);

/// "largest batch 14: 22.7 GiB of 23.6 GiB; batch 15 would need 24.3 GiB", and above it lines for the safe batch and
/// for the largest without cache flushes, where these are smaller. The same for whatever else grows. Something must
/// fit.
[[nodiscard]] std::string to_text(const Fit& fit, const GpuProfile& gpu);

/// What is said where not even the smallest size fits: without the remedy, and with it.
[[nodiscard]] std::string why_nothing_fits(const Fit& fit, const EstimatedJob& estimated_job);
[[nodiscard]] Error does_not_fit(const Fit& fit, const EstimatedJob& estimated_job);

/// The text with spaces up to a width, in front of it with `right`.
[[nodiscard]] std::string padded(std::string_view text, std::size_t width, bool right);

/// A warning as a line for people, with its place.
[[nodiscard]] std::string to_text(const model::Warning& warning);

/// "gpumem: warning: ..." on standard error, one line a warning.
void print_warnings(const ModelGraph& graph);
/// The same, and what the answers guess of the model.
void print_warnings(const EstimatedJob& estimated_job);

/// A part as a share of a whole.
[[nodiscard]] double share_of(Bytes part, Bytes whole);
/// A bar of one figure.
[[nodiscard]] Gauge bar(double share, Tone tone = Tone::plain);
/// What the estimate's range takes of the GPU.
[[nodiscard]] Gauge gauge_of(const MemoryEstimate& estimate, const GpuProfile& gpu);
/// The same of what there is for the job.
[[nodiscard]] Gauge gauge_in(const MemoryEstimate& estimate, Bytes room);
/// What there is for the job: "79.3 GiB", or "39.6 GiB that the process may take" where that is less than the GPU has.
[[nodiscard]] std::string room_of(const MemoryEstimate& estimate, const GpuProfile& gpu);
/// The same as a line of its own, in a terminal; else nothing.
[[nodiscard]] std::string drawn_estimate(const MemoryEstimate& estimate, const GpuProfile& gpu,
                                         const Terminal& terminal);
/// Why a job is tight, a line each behind `before`; of any other nothing.
[[nodiscard]] std::string why_tight(const MemoryEstimate& estimate, const GpuProfile& gpu, const std::string& before);
/// "yes", "tight", "no" or "unknown".
[[nodiscard]] Cell fits_cell(estimate::Verdict verdict);

/// The table; in a terminal with the range against the GPU's capacity and bars of the breakdown.
[[nodiscard]] std::string to_table(const EstimatedJob& estimated_job, const Terminal& terminal);

}  // namespace gpumem::cli
