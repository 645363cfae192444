// Input: a table of measured runs in gpumem's own form, one run a row.
// Output: MeasuredRuns.
//
// Columns that must be there (a cell may be empty, except the first two):
//   summary       the model summary's path, relative to the table's
//   batch_size    samples
//   input         one sample's shape, such as 3x224x224; empty: as the summary says
//   seq_length    tokens a sample
//   optimizer     adam, adamw, sgd, ...; empty: adam
//   precision     fp32, amp-fp16, ...; empty: fp32
//   gpu           a profile's name
//   measured_mib  the measured peak; empty: the run was not measured
// Columns that may be there: the other options that say how a job is trained, by their names (job/job_options.hpp:
// software, zero_grad, samples_per_epoch, foreach, fused, ...); name, gpus, summary_pass, loss, figure (device,
// reserved, allocated, growth, active), status (ok, or oom for a run that did not fit), the counters of the run, as
// shares from 0 to 1: gpu_utilisation, gract, smact, smocc, fp32; and published_NAME_mib (or published_NAME_mb, which
// is read as MiB as well: that is how such figures are compared with what nvidia-smi prints), what another estimator
// said about the run; an empty cell: nothing. All others are ignored. bench/measured/measure.py writes such tables.
#pragma once

#include "gpumem_datasets/runs_format.hpp"

namespace gpumem::datasets {

[[nodiscard]] const RunsFormat& runs_csv();

}  // namespace gpumem::datasets
