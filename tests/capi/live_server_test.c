/* The GPUs of a machine that is not there (tests/support/nvml), from C: read, placed on, refused. */
#define _POSIX_C_SOURCE 200809L
#include "calls.h"

static void write_machine(const char* path, const char* gpus) {
  FILE* file = fopen(path, "w");
  CHECK(file != NULL);
  if (file == NULL) exit(1);
  fprintf(file, "{%s}", gpus);
  CHECK(fclose(file) == 0);
}

static void a_job_is_placed_on_a_live_server(void) {
  gpumem_live_server* server = NULL;
  gpumem_request request = GPUMEM_REQUEST_INIT;
  gpumem_decision decision = GPUMEM_DECISION_INIT;
  const gpumem_server_gpu* gpus = NULL;
  size_t count = 0;
  size_t chosen = 0;
  CHECK_STATUS(gpumem_live_server_read(0, &server, MESSAGE), GPUMEM_OK);
  gpus = gpumem_live_server_gpus(server, &count);
  CHECK(count == 2);
  if (count != 2) exit(1);
  CHECK(strcmp(gpus[0].id, "GPU-a") == 0 && strcmp(gpus[1].id, "GPU-b") == 0);
  CHECK(gpus[0].size == sizeof gpus[0]);
  CHECK(gpus[0].total_bytes == INT64_C(42474471424) && gpus[0].used_bytes == INT64_C(30000000000));
  CHECK(gpus[0].jobs == 0 && gpus[0].set_aside_bytes == 0 && gpus[0].exclusive == 0);
  CHECK(gpus[0].smact > 0.49 && gpus[0].smact < 0.51);
  CHECK(strcmp(gpumem_live_server_profile(server, 0), "a100-40gb") == 0);
  CHECK(strcmp(gpumem_live_server_profile(server, 1), "") == 0);
  CHECK(gpumem_live_server_profile(server, 2) == NULL);
  CHECK(strstr(gpumem_live_server_warning(server, 0), "has no profile") != NULL);
  CHECK(gpumem_live_server_warning(server, 1) == NULL);
  request.memory_bytes = INT64_C(15000000000);
  decision.gpus = &chosen;
  decision.gpus_capacity = 1;
  CHECK_STATUS(gpumem_place(&request, gpus, count, NULL, NULL, &decision, MESSAGE), GPUMEM_OK);
  CHECK(decision.gpus_count == 1 && chosen == 1);
  gpumem_live_server_free(server);
}

static void what_cannot_be_is_refused(const char* path) {
  gpumem_live_server* server = NULL;
  size_t count = 1;
  CHECK_STATUS(gpumem_live_server_read(0, NULL, MESSAGE), GPUMEM_INVALID_ARGUMENT);
  CHECK_STATUS(gpumem_live_server_read(-1, &server, MESSAGE), GPUMEM_INVALID_ARGUMENT);
  CHECK_STATUS(gpumem_live_server_read(3600001, &server, MESSAGE), GPUMEM_INVALID_ARGUMENT);
  write_machine(path, "\"gpus\": [], \"fail\": {\"nvmlInit_v2\": 9}");
  CHECK_STATUS(gpumem_live_server_read(0, &server, MESSAGE), GPUMEM_MISSING_INFORMATION);
  CHECK(strstr(message, "driver does not answer") != NULL);
  setenv("GPUMEM_NVML", "/nowhere/libnvidia-ml.so.1", 1);
  CHECK_STATUS(gpumem_live_server_read(0, &server, MESSAGE), GPUMEM_UNREADABLE_FILE);
  CHECK(server == NULL);
  CHECK(gpumem_live_server_gpus(NULL, &count) == NULL && count == 0);
  CHECK(gpumem_live_server_gpus(NULL, NULL) == NULL);
  CHECK(gpumem_live_server_profile(NULL, 0) == NULL && gpumem_live_server_warning(NULL, 0) == NULL);
  gpumem_live_server_free(NULL);
}

int main(int argc, char** argv) {
  if (argc != 3) return 2; /* the pretended library, and a file that may be written */
  setenv("GPUMEM_NVML", argv[1], 1);
  setenv("GPUMEM_PRETENDED_NVML", argv[2], 1);
  write_machine(argv[2],
                "\"gpus\": [{\"uuid\": \"GPU-a\", \"name\": \"NVIDIA A100-SXM4-40GB\", \"memory_total\": 42949672960, "
                "\"reserved\": 475201536, \"used_outside\": 30000000000, \"utilisation\": 50}, "
                "{\"uuid\": \"GPU-b\", \"name\": \"Odd\", \"memory_total\": 20000000000}]");
  a_job_is_placed_on_a_live_server();
  what_cannot_be_is_refused(argv[2]);
  remove(argv[2]);
  return failures == 0 ? 0 : 1;
}
