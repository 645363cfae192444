#include "job_files.hpp"

#include <array>
#include <cstdio>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "gpumem/core/csv.hpp"
#include "gpumem/core/file.hpp"
#include "gpumem/summary/graph_json.hpp"

namespace gpumem::train {

namespace {

/// "3x224x224"; nothing for token ids, whose number seq_length tells.
std::string input_of(const model::TrainingJob& job) {
  std::string text;
  if (job.sequence_length) return text;
  const core::Shape& shape = job.graph->graph_inputs()[0].shape;
  for (std::size_t axis = 1; axis < shape.rank(); ++axis) {
    text += (axis == 1 ? "" : "x") + std::to_string(shape[axis].size);
  }
  return text;
}

std::string optional_text(const std::optional<std::int64_t>& value) { return value ? std::to_string(*value) : ""; }

std::string mib_text(double mib) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.10g", mib);
  return text.data();
}

std::string file_of(const LabelledJob& job) { return job.made.name + ".json"; }

}  // namespace

std::string runs_header() {
  return "summary,batch_size,input,seq_length,optimizer,precision,gpu,measured_mib,name,loss,samples_per_epoch,"
         "summary_pass,software,replay_mib,replay_fits\n";
}

std::string runs_row(const LabelledJob& labelled, std::string_view gpu) {
  const model::TrainingJob& job = labelled.made.job;
  const std::array<std::string, 15> cells = {file_of(labelled),
                                             std::to_string(job.batch_size),
                                             input_of(job),
                                             optional_text(job.sequence_length),
                                             std::string(model::name_of(model::kOptimizers, job.optimizer)),
                                             std::string(model::name_of(model::kPrecisions, job.precision)),
                                             std::string(gpu),
                                             "",
                                             labelled.made.name,
                                             std::string(model::name_of(model::kLosses, job.loss)),
                                             optional_text(job.samples_per_epoch),
                                             job.summary_pass ? "yes" : "no",
                                             job.software,
                                             mib_text(labelled.replay_mib),
                                             labelled.fits ? "yes" : "no"};
  std::string row;
  for (const std::string& cell : cells) row += (row.empty() ? "" : ",") + core::csv_field(cell);
  return row + "\n";
}

core::Status write_jobs(const LabelledJobs& jobs, const JobFiles& files,
                        const std::function<void(const LabelledJob&, std::uint64_t)>& written) {
  const std::filesystem::path folder = files.folder;
  std::error_code failure;
  std::filesystem::create_directories(folder, failure);
  if (failure) {
    const std::string message = "cannot make the folder: " + failure.message();
    return core::Error{core::ErrorCode::unreadable_file, message, {files.folder, 0, {}}};
  }
  std::string table = runs_header();
  for (std::uint64_t done = 0; done < files.count; ++done) {
    const auto job = jobs.at(files.first + done);
    if (!job) return job.error();
    const std::string text = summary::to_graph_json(*job->made.job.graph);
    if (core::Status status = core::write_file((folder / file_of(*job)).string(), text); !status) return status;
    table += runs_row(*job, files.gpu);
    written(*job, done + 1);
  }
  return core::write_file((folder / kRunsFile).string(), table);
}

}  // namespace gpumem::train
