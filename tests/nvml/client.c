/* A reader of NVML that shares nothing with remuda: one line for each GPU with its UUID, name, memory in bytes (all and
 * used), temperature in degrees, power in milliwatts and use in percent, separated by tabs; - where the driver tells
 * none. */
#include <dlfcn.h>
#include <stdio.h>

struct memory {
  unsigned long long total, free, used;
};
struct use {
  unsigned gpu, memory;
};

static void* nvml;
static void* get(const char* name) { return dlsym(nvml, name); }

static void field(int failed, unsigned long long value) {
  if (failed)
    printf("\t-");
  else
    printf("\t%llu", value);
}

int main(void) {
  nvml = dlopen("libnvidia-ml.so.1", RTLD_NOW);
  if (!nvml) return fprintf(stderr, "%s\n", dlerror()), 1;
  int (*init)(void) = get("nvmlInit_v2");
  int (*shutdown)(void) = get("nvmlShutdown");
  int (*count)(unsigned*) = get("nvmlDeviceGetCount_v2");
  int (*handle)(unsigned, void**) = get("nvmlDeviceGetHandleByIndex_v2");
  int (*uuid)(void*, char*, unsigned) = get("nvmlDeviceGetUUID");
  int (*name)(void*, char*, unsigned) = get("nvmlDeviceGetName");
  int (*memory)(void*, struct memory*) = get("nvmlDeviceGetMemoryInfo");
  int (*use)(void*, struct use*) = get("nvmlDeviceGetUtilizationRates");
  int (*heat)(void*, int, unsigned*) = get("nvmlDeviceGetTemperature");
  int (*power)(void*, unsigned*) = get("nvmlDeviceGetPowerUsage");
  unsigned gpus = 0;
  if (init() || count(&gpus)) return fprintf(stderr, "NVML does not start\n"), 1;
  for (unsigned i = 0; i < gpus; ++i) {
    void* gpu;
    char text[96];
    struct memory bytes = {0, 0, 0};
    struct use percent = {0, 0};
    unsigned celsius = 0, milliwatts = 0;
    if (handle(i, &gpu)) continue;
    printf("%s", uuid(gpu, text, sizeof text) ? "-" : text);
    printf("\t%s", name(gpu, text, sizeof text) ? "-" : text);
    const int no_memory = memory(gpu, &bytes), no_heat = heat(gpu, 0, &celsius), no_power = power(gpu, &milliwatts);
    const int no_use = use(gpu, &percent);
    field(no_memory, bytes.total);
    field(no_memory, bytes.used);
    field(no_heat, celsius);
    field(no_power, milliwatts);
    field(no_use, percent.gpu);
    printf("\n");
  }
  return shutdown();
}
