/*
 * The SPANK plugin without Slurm, whose functions are played here: options, settings and the line for the user, in
 * every context. Sanitizers reach it here, as they cannot within sbatch.
 *   spank_test FOLDER    FOLDER: models/summaries
 */
#include <limits.h>
#include <slurm/spank.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include "../capi/check.h"

static struct spank_option* registered[128];
static size_t registered_count = 0;
static spank_context_t context = S_CTX_ALLOCATOR;
static char figure[64];      /* GPUMEM_MIB as it was sent */
static char gpus[64];        /* GPUMEM_GPUS; empty: not sent */
static char told[8192];      /* to the user */
static char complaint[8192]; /* the last error */
static char limit[64];       /* of MPS, in the task */
static const char* shards = NULL;

spank_context_t spank_context(void) { return context; }

spank_err_t spank_option_register(spank_t spank, struct spank_option* option) {
  (void)spank;
  registered[registered_count++] = option;
  return ESPANK_SUCCESS;
}

spank_err_t spank_job_control_setenv(spank_t spank, const char* name, const char* value, int overwrite) {
  const int of_gpus = strcmp(name, "GPUMEM_GPUS") == 0;
  (void)spank;
  CHECK((of_gpus || strcmp(name, "GPUMEM_MIB") == 0) && overwrite);
  (void)snprintf(of_gpus ? gpus : figure, sizeof figure, "%s", value);
  return ESPANK_SUCCESS;
}

spank_err_t spank_getenv(spank_t spank, const char* name, char* buffer, int length) {
  (void)spank;
  CHECK(strcmp(name, "SLURM_SHARDS_ON_NODE") == 0);
  if (shards == NULL) return ESPANK_ENV_NOEXIST;
  (void)snprintf(buffer, (size_t)length, "%s", shards);
  return ESPANK_SUCCESS;
}

spank_err_t spank_setenv(spank_t spank, const char* name, const char* value, int overwrite) {
  (void)spank;
  CHECK(strcmp(name, "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT") == 0 && overwrite);
  (void)snprintf(limit, sizeof limit, "%s", value);
  return ESPANK_SUCCESS;
}

void slurm_error(const char* format, ...) {
  va_list values;
  va_start(values, format);
  (void)vsnprintf(complaint, sizeof complaint, format, values);
  va_end(values);
}

void slurm_spank_log(const char* format, ...) {
  va_list values;
  va_start(values, format);
  (void)vsnprintf(told, sizeof told, format, values);
  va_end(values);
}

/* One sbatch: "name=value" each; a job's setting in plugstack.conf after "--". What slurm_spank_init_post_opt says. */
static int submit(const char* const* words) {
  char* settings[8];
  int setting_count = 0;
  int status = 0;
  figure[0] = gpus[0] = told[0] = complaint[0] = '\0';
  registered_count = 0;
  CHECK(slurm_spank_init(NULL, 0, NULL) == 0);
  CHECK(registered_count < sizeof registered / sizeof registered[0]);
  for (; *words != NULL && strcmp(*words, "--") != 0; ++words) {
    const size_t length = strcspn(*words, "=");
    size_t index = 0;
    int found = 0;
    for (index = 0; index < registered_count; ++index) {
      struct spank_option* option = registered[index];
      if (strlen(option->name) != length || strncmp(option->name, *words, length) != 0) continue;
      found = 1;
      CHECK(option->cb(option->val, option->has_arg ? *words + length + 1 : NULL, 0) == 0);
    }
    CHECK(found);
  }
  for (words += *words != NULL; *words != NULL; ++words) settings[setting_count++] = (char*)*words;
  status = slurm_spank_init_post_opt(NULL, setting_count, settings);
  CHECK(slurm_spank_exit(NULL, setting_count, settings) == 0);
  return status;
}

#define SUBMIT(...) submit((const char* const[]){__VA_ARGS__, NULL})
#define ACCEPTED(mebibytes, ...)           \
  do {                                     \
    CHECK(SUBMIT(__VA_ARGS__) == 0);       \
    CHECK(strcmp(figure, mebibytes) == 0); \
    CHECK(complaint[0] == '\0');           \
  } while (0)
#define REFUSED(text, ...)                  \
  do {                                      \
    CHECK(SUBMIT(__VA_ARGS__) == -1);       \
    CHECK(figure[0] == '\0');               \
    CHECK(strstr(complaint, text) != NULL); \
  } while (0)

static const char kModel[] = "gpumem-model=vgg16.torchsummary.txt";
static const char kBatch[] = "gpumem-batch=64";

static void test_the_line_and_the_figure(void) {
  ACCEPTED("15059", kModel, kBatch);
  CHECK(strcmp(told, "gpumem: vgg16 at batch 64 needs 12.0 GiB on a100-40gb, asking for 15,059 MiB") == 0);
  /* The option given last, and the user's before the site's. */
  ACCEPTED("8467", kModel, kBatch, "gpumem-batch=32");
  ACCEPTED("15059", kModel, kBatch, "gpumem-gpu=a100-40gb", "--", "gpu=v100-16gb");
  ACCEPTED("13322", kModel, kBatch, "gpumem-margin=1GiB", "--", "margin=2GiB");
  ACCEPTED("13322", kModel, kBatch, "--", "margin=1024MiB");
  ACCEPTED("15059", kModel, kBatch, "gpumem-margin=", "gpumem-gpu=", "gpumem-estimator=");
  CHECK(strstr(told, "on a100-40gb") != NULL);
  ACCEPTED("12298", kModel, kBatch, "gpumem-margin=0");
  ACCEPTED("15059", kModel, kBatch, "gpumem-margin=upper", "--", "margin=0", "estimator=replay", "deadline_ms=60000");
  /* What is expected fits the GPU, and what is asked for is no more than it has. */
  ACCEPTED("40506", kModel, kBatch, "gpumem-margin=30GiB");
}

static void test_layouts(void) {
  ACCEPTED("15059", kModel, kBatch);
  CHECK(gpus[0] == '\0');
  /* Each rank of DistributedDataParallel has all of the model. */
  CHECK(SUBMIT(kModel, kBatch, "gpumem-data-parallel=8", "gpumem-sharding=ddp") == 0);
  CHECK(strcmp(gpus, "8") == 0 && atoll(figure) > 12298);
  CHECK(strstr(told, " MiB on each of 8 GPUs") != NULL);
  /* One rank is one GPU. */
  CHECK(SUBMIT(kModel, kBatch, "gpumem-data-parallel=8", "gpumem-sharding=ddp", "gpumem-rank=3") == 0);
  CHECK(gpus[0] == '\0');
}

static void test_jobs_that_do_not_ask(void) {
  CHECK(submit((const char* const[]){NULL}) == 0 && figure[0] == '\0' && told[0] == '\0' && complaint[0] == '\0');
  CHECK(SUBMIT("--", "nonsense") == 0 && complaint[0] == '\0');
}

static void test_refusals(void) {
  static const char* const kMargins[] = {
      "1", "GiB", "1.5GiB", "-1GiB", "10%", "1gib", "9999999999GiB", "1GiB ", "00000000000000000001GiB"};
  static const char* const kNumbers[] = {"0", "-1", "1e3", "", " 1", "0x10", "99999999999999999999", "64 "};
  char word[64];
  size_t index = 0;
  REFUSED("go together", kModel);
  REFUSED("go together", kBatch);
  REFUSED("go together", "gpumem-checkpointing");
  REFUSED("cannot open", "gpumem-model=missing", kBatch);
  REFUSED("regular file", "gpumem-model=/dev/zero", kBatch);
  REFUSED("not a setting", kModel, kBatch, "--", "gpus=a100-40gb");
  REFUSED("not a setting", kModel, kBatch, "--", "gpu=");
  REFUSED("not a setting", kModel, kBatch, "--", "deadline_ms=0");
  REFUSED("not a setting", kModel, kBatch, "--", "largest_mib=4096");
  REFUSED("", kModel, kBatch, "gpumem-gpu=voodoo");
  REFUSED("", kModel, kBatch, "gpumem-estimator=voodoo");
  REFUSED("", kModel, kBatch, "gpumem-optimizer=voodoo");
  for (index = 0; index < sizeof kMargins / sizeof kMargins[0]; ++index) {
    (void)snprintf(word, sizeof word, "gpumem-margin=%s", kMargins[index]);
    REFUSED("there is no margin", kModel, kBatch, word);
  }
  for (index = 0; index < sizeof kNumbers / sizeof kNumbers[0]; ++index) {
    (void)snprintf(word, sizeof word, "gpumem-batch=%s", kNumbers[index]);
    REFUSED("say a whole number of 1 or more", kModel, word);
  }
}

/* Every option of a job but the one that is left out on purpose: a flag is taken, or refused by its name; a value that
   no option takes is refused. */
static void test_every_option_of_a_job(void) {
  const gpumem_job_option* option = NULL;
  char word[128];
  size_t index = 0;
  size_t walked = 0;
  for (index = 0; (option = gpumem_job_option_at(index)) != NULL; ++index) {
    const int is_model = strcmp(option->name, "model") == 0;
    const int is_on = option->usual != NULL && strcmp(option->usual, "true") == 0;
    const char* begin = is_model ? "trained-" : is_on ? "no-" : "";
    if (strcmp(option->name, "lenient") == 0) continue;
    (void)snprintf(word, sizeof word, "gpumem-%s%s%s", begin, option->flag, option->value != NULL ? "=?" : "");
    if (option->value == NULL) {
      CHECK(SUBMIT(kModel, kBatch, word) == 0 || strstr(complaint, option->flag) != NULL);
    } else if (is_model) {
      REFUSED("'?'", kModel, kBatch, word, "gpumem-estimator=gpumemnet-mlp");
    } else if (strcmp(option->name, "lora_targets") == 0) {
      REFUSED("'?'", kModel, kBatch, word, "gpumem-lora=4"); /* they are asked for only with a rank */
    } else if (strcmp(option->name, "peft_options") == 0) {
      REFUSED("'?'", kModel, kBatch, word, "gpumem-peft=fourierft", "gpumem-lora-targets=all-linear");
    } else if (strcmp(option->name, "parts") == 0) {
      REFUSED("diffusers folder", kModel, kBatch, word); /* only such a model has parts */
    } else {
      REFUSED("'?'", kModel, kBatch, word);
    }
    ++walked;
  }
  CHECK(walked > 10 && registered_count == walked + 2);
  REFUSED("say --gpumem-tensor-parallel=2", kModel, kBatch, "gpumem-sequence-parallel");
  ACCEPTED("8467", kModel, "gpumem-batch=32", "gpumem-software=lazy-loading", "gpumem-zero-grad=");
  CHECK(SUBMIT(kModel, kBatch, "gpumem-estimator=zero-2", "gpumem-data-parallel=8") == 0 && atoi(figure) > 0);
  index = (size_t)atoi(figure);
  CHECK(SUBMIT(kModel, kBatch, "gpumem-estimator=zero-2", "gpumem-data-parallel=2") == 0);
  CHECK((size_t)atoi(figure) > index);
}

static void test_long_paths(void) {
  char word[20000] = "gpumem-model=";
  const size_t head = strlen(word);
  memset(word + head, 'x', sizeof word - head - 1);
  word[sizeof word - 1] = '\0';
  REFUSED("too long", word, kBatch);
  word[head + 4095] = '\0';
  REFUSED("too long", word, kBatch); /* for the system: a name of a file has 255 bytes */
}

static void test_names_in_the_line(void) {
  char folder[] = "/tmp/gpumem_spank_XXXXXX";
  char target[PATH_MAX];
  char path[64];
  char word[128];
  ACCEPTED("15059", "gpumem-model=./vgg16.torchsummary.txt", kBatch);
  CHECK(strncmp(told, "gpumem: vgg16 at", 16) == 0);
  /* What a terminal would take for a command. */
  CHECK(mkdtemp(folder) != NULL && realpath("vgg16.torchsummary.txt", target) != NULL);
  (void)snprintf(path, sizeof path, "%s/a\033[31m\n%%s%%n.txt", folder);
  CHECK(symlink(target, path) == 0);
  (void)snprintf(word, sizeof word, "gpumem-model=%s", path);
  ACCEPTED("15059", word, kBatch);
  CHECK(strncmp(told, "gpumem: a?[31m?%s%n at batch", 28) == 0);
  CHECK(unlink(path) == 0 && rmdir(folder) == 0);
}

static void test_contexts(void) {
  context = S_CTX_LOCAL;
  ACCEPTED("15059", kModel, kBatch);
  /* A step of a job. */
  CHECK(setenv("SLURM_JOB_ID", "1", 1) == 0);
  CHECK(SUBMIT(kModel, kBatch) == 0 && figure[0] == '\0' && told[0] == '\0');
  /* A job from within a job, which has handed its options down. */
  context = S_CTX_ALLOCATOR;
  CHECK(setenv("SLURM_SPANK__SLURM_SPANK_OPTION_gpumem_gpumem_model", "x", 1) == 0);
  ACCEPTED("15059", kModel, kBatch);
  CHECK(getenv("SLURM_SPANK__SLURM_SPANK_OPTION_gpumem_gpumem_model") == NULL);
  CHECK(unsetenv("SLURM_JOB_ID") == 0);
  /* On nodes. */
  context = S_CTX_REMOTE;
  CHECK(SUBMIT(kModel, kBatch) == 0 && figure[0] == '\0');
  context = S_CTX_SLURMD;
  CHECK(submit((const char* const[]){NULL}) == 0 && registered_count == 0);
  context = S_CTX_ALLOCATOR;
}

static void test_tasks(void) {
  char* settings[] = {(char*)"mps_limit"};
  shards = "15059";
  CHECK(slurm_spank_task_init(NULL, 0, NULL) == 0 && limit[0] == '\0');
  CHECK(slurm_spank_task_init(NULL, 1, settings) == 0 && strcmp(limit, "0=15059M") == 0);
  limit[0] = '\0';
  shards = NULL;
  CHECK(slurm_spank_task_init(NULL, 1, settings) == 0 && limit[0] == '\0');
  shards = "0";
  CHECK(slurm_spank_task_init(NULL, 1, settings) == 0 && limit[0] == '\0');
}

int main(int argc, char** argv) {
  if (argc != 2 || chdir(argv[1]) != 0) {
    fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
    return 2;
  }
  test_the_line_and_the_figure();
  test_layouts();
  test_jobs_that_do_not_ask();
  test_refusals();
  test_every_option_of_a_job();
  test_long_paths();
  test_names_in_the_line();
  test_contexts();
  test_tasks();
  return failures == 0 ? 0 : 1;
}
