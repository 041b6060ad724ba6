/* What a program of CUDA sees of the machine that NVML's library shows: the UUIDs, one a line, of cuda:0, cuda:1, ...
 *
 * The rule is that of CUDA_VISIBLE_DEVICES (CUDA Programming Guide, "CUDA Environment Variables"): unset, all devices;
 * else a list of numbers or of beginnings of UUIDs, of which the first that names no device ends the list. Numbers count
 * in PCI order, as with CUDA_DEVICE_ORDER=PCI_BUS_ID. Shares nothing with remuda. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 64, LONGEST = 96 };
static char uuids[MOST][LONGEST];
static unsigned gpus;

static const char* value_of(char** environment, const char* name) {
  const size_t length = strlen(name);
  for (; *environment; ++environment)
    if (!strncmp(*environment, name, length) && (*environment)[length] == '=') return *environment + length + 1;
  return NULL;
}

static int read_machine(void) {
  void* nvml = dlopen("libnvidia-ml.so.1", RTLD_NOW);
  if (!nvml) return fprintf(stderr, "%s\n", dlerror()), 1;
  int (*init)(void) = dlsym(nvml, "nvmlInit_v2");
  int (*count)(unsigned*) = dlsym(nvml, "nvmlDeviceGetCount_v2");
  int (*handle)(unsigned, void**) = dlsym(nvml, "nvmlDeviceGetHandleByIndex_v2");
  int (*uuid)(void*, char*, unsigned) = dlsym(nvml, "nvmlDeviceGetUUID");
  if (init() || count(&gpus) || gpus > MOST) return fprintf(stderr, "NVML does not start\n"), 1;
  for (unsigned i = 0; i < gpus; ++i) {
    void* gpu;
    if (handle(i, &gpu) || uuid(gpu, uuids[i], LONGEST)) strcpy(uuids[i], "lost");
  }
  return 0;
}

/* The device that one entry of the list names; none: -1. */
static int device_of(const char* entry) {
  char* end;
  const long number = strtol(entry, &end, 10);
  if (end != entry && *end == '\0') return number >= 0 && number < (long)gpus ? (int)number : -1;
  for (unsigned i = 0; i < gpus; ++i)
    if (!strncmp(entry, "GPU-", 4) && !strncmp(uuids[i], entry, strlen(entry))) return (int)i;
  return -1;
}

int main(int argc, char** argv, char** environment) {
  const char* visible = value_of(environment, "CUDA_VISIBLE_DEVICES");
  char list[MOST * LONGEST];
  (void)argc, (void)argv;
  if (read_machine()) return 1;
  if (!visible) {
    for (unsigned i = 0; i < gpus; ++i) puts(uuids[i]);
    return 0;
  }
  snprintf(list, sizeof list, "%s", visible);
  for (char* entry = strtok(list, ","); entry; entry = strtok(NULL, ",")) {
    const int device = device_of(entry);
    if (device < 0) break;
    puts(uuids[device]);
  }
  return 0;
}
