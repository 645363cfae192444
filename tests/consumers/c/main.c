#include <gpumem/gpumem.h>
#include <stdio.h>

int main(int argc, char** argv) {
  gpumem_summary* summary = NULL;
  gpumem_summary_info info = GPUMEM_SUMMARY_INFO_INIT;
  char message[200];
  if (argc != 2) return 2;
  if (gpumem_summary_from_file(argv[1], NULL, &summary, message, sizeof message) != GPUMEM_OK) return 1;
  if (gpumem_summary_describe(summary, &info, message, sizeof message) != GPUMEM_OK) return 1;
  printf("%lld parameters\n", (long long)info.parameters);
  gpumem_summary_free(summary);
  return 0;
}
