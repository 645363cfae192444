// A table of measured runs that names the summary, and the model that its one run trains.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <gpumem_datasets/datasets.hpp>

int main(int, char** argv) {
  const std::filesystem::path table = std::filesystem::path(argv[0]).parent_path() / "runs.csv";
  std::ofstream(table) << "summary,batch_size,input,seq_length,optimizer,precision,gpu,measured_mib\n"
                       << argv[1] << ",32,,,,,a100-40gb,4000\n";
  const auto runs = gpumem::datasets::read_runs(table.string());
  if (!runs || runs->runs.size() != 1 || runs->runs[0].error) return 1;
  std::printf("%lld parameters\n", static_cast<long long>(runs->runs[0].job.graph->parameters()));
}
