#include <cstdio>
#include <gpumem/gpumem.hpp>

int main(int, char** argv) {
  auto model = gpumem::read_summary(argv[1]);    // any format; the error names file and line
  auto gpu = gpumem::find_profile("a100-40gb");  // or a path to a profile of your own
  auto replay = gpumem::make_estimator("replay");
  if (!model || !gpu || !replay) return 1;
  gpumem::TrainingJob job(*model, 32);  // batch size 32, Adam, fp32
  auto estimate = (*replay)->estimate(job, *gpu);
  auto fit = gpumem::largest_batch(job, *gpu, **replay);
  if (!estimate || !fit) return 1;
  std::printf("%lld parameters, %s at batch 32: %s; the largest batch is %lld\n",
              static_cast<long long>(model->parameters()), to_string(estimate->expected).c_str(),
              estimate->fits ? "fits" : "does not fit", static_cast<long long>(fit->batch_size));
}
