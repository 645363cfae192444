#include <cstdio>
#include <gpumem/gpumem.hpp>

int main(int, char** argv) {
  gpumem::Session session;
  gpumem::JobRequest request;
  request.summary = argv[1];         // any format; an error names file and line
  request.gpu = "a100-40gb";         // or a path to a profile of your own
  request.training.batch_size = 32;  // with Adam and fp32, unless you say otherwise
  const auto estimate = session.estimate(request);
  const auto fit = session.fit(request);
  if (!estimate || !fit) return 1;
  std::printf("%s at batch 32: %s; the largest batch is %lld, the largest safe one %lld\n",
              to_string(estimate->expected).c_str(), to_string(estimate->verdict).data(),
              static_cast<long long>(fit->batch_size), static_cast<long long>(fit->safe.size));
}
