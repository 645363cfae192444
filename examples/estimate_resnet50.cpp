#include <cstdio>
#include <gpumem/gpumem.hpp>

int main(int, char** argv) {
  auto model = gpumem::read_summary(argv[1]);    // any format; the error names file and line
  auto gpu = gpumem::find_profile("a100-40gb");  // or a path to a profile of your own
  auto horus = gpumem::make_estimator("horus");
  if (!model || !gpu || !horus) return 1;
  auto estimate = (*horus)->estimate({*model, 32}, *gpu);  // batch size 32, Adam, fp32
  if (!estimate) return 1;
  std::printf("%lld parameters, %s at batch 32: %s\n", static_cast<long long>(model->parameters()),
              to_string(estimate->expected).c_str(), estimate->fits ? "fits" : "does not fit");
}
