// Machines for tests, as recordings: the format of `remuda record` with what a pool says beside it.

export const NOON = 1_795_608_000; // seconds since 1970

export function gpu(index, status = {}, more = {}) {
  return { id: `GPU-${index}`, kind: 'gpu', index, vendor: 'NVIDIA', model: 'NVIDIA A100-SXM4-40GB', memory_bytes: 40 * 2 ** 30, numa_node: 0, pcie_root: 'pci0000:00', status, ...more };
}

export function machine(host, devices, more = {}) {
  return { version: 1, host, time_s: NOON, source: 'live', devices, ...more };
}

/// The machine with samples each 10 s of the last ten minutes, of which `statusAt(n)` gives the devices' status.
export function recorded(one, statusAt, { endS = NOON, count = 60 } = {}) {
  const samples = Array.from({ length: count }, (_, n) => ({ time_s: endS - 10 * (count - 1 - n), devices: statusAt(n) }));
  return { ...one, samples };
}

export const oneGpu = machine('solo', [gpu(0, { busy: 0.5, memory_used_bytes: 10 * 2 ** 30, power_watts: 201.5, temperature_c: 55 })]);

export const missing = (reason, detail) => ({ missing: reason, detail });

const NO = missing('denied', 'only administrators may read it');
export const allMissing = machine('mute', [
  gpu(0, Object.fromEntries(['busy', 'memory_used_bytes', 'power_watts', 'temperature_c', 'sm_clock_mhz', 'tensor_active', 'processes'].map((key) => [key, NO])), {
    model: '', memory_bytes: NO, numa_node: NO, pcie_root: NO,
  }),
  gpu(1, { busy: missing('lost', 'the device was no longer there') }),
]);

const MARKUP = '<img src=x onerror="document.title=`owned`">';
export const markup = machine(MARKUP, [gpu(0, { busy: 0.2 }, { model: `${MARKUP}</title><script>` })], {
  jobs: {
    leases: [{ job: 1, device: 'GPU-0', share: 1, since_s: NOON - 60, user: MARKUP, name: "'\"><script>alert(1)</script>", command: [MARKUP] }],
    waiting: [{ id: 2, user: MARKUP, name: MARKUP, submitted_s: NOON - 5, request: { count: 1 }, why: `${MARKUP} javascript:alert(1)` }],
  },
  runs: [{ job: 1, user: MARKUP, name: MARKUP, run: { at_s: NOON, step: 1, steps: 2, step_s: 1, parts: [{ device: MARKUP, share: 0.5, waiting: 0.5 }, { device: 'GPU-0', share: 0.5 }] } }],
  alerts: [{ rule: MARKUP, device: 'GPU-0', since_s: NOON - 60, text: MARKUP, command: MARKUP, value: MARKUP, limit: MARKUP }],
});
