// The program's own file needs no header of the library: what the other includes is the whole of it.
#include <cstdint>
#include <cstdio>

std::int64_t parameters_of(const char* path);
bool fits(const char* path);
bool replay_agrees(const char* path);

int main(int, char** argv) {
  if (!fits(argv[1]) || !replay_agrees(argv[1])) return 1;
  std::printf("%lld parameters\n", static_cast<long long>(parameters_of(argv[1])));
}
