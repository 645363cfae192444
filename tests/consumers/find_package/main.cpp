#include <cstdio>
#include <gpumem/gpumem.hpp>

int main(int, char** argv) {
  const auto model = gpumem::read_summary(argv[1]);
  if (!model) return 1;
  std::printf("%lld parameters\n", static_cast<long long>(model->parameters()));
}
