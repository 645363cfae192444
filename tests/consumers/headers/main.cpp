#include <cstdio>
#include <gpumem/all.hpp>

std::int64_t parameters_of(const char* path);
bool fits(const char* path);
bool replay_agrees(const char* path);

int main(int, char** argv) {
  if (!fits(argv[1]) || !replay_agrees(argv[1]) || gpumem::ops::catalogue().empty()) return 1;
  std::printf("%lld parameters\n", static_cast<long long>(parameters_of(argv[1])));
}
