// What a snapshot says, as the page shows it: hosts, their devices, who holds each and what it does. Pure.

const SILENT_S = 30; // a host that has sent nothing for so long is not believed any more
const IDLE = 0.02; // less of the time busy is idle

export const NOT_READ = 'not read';

/// A reading is {value} or {reason}: the number, or one sentence on why there is none. Never 0 for unknown.
export function reading(raw) {
  if (raw === undefined || raw === null) return { reason: NOT_READ };
  if (typeof raw === 'object' && !Array.isArray(raw)) {
    if ('missing' in raw) return { reason: raw.detail || REASONS[raw.missing] || String(raw.missing), missing: raw.missing };
    if ('value' in raw) return { value: raw.value, timeS: raw.time_s };
  }
  return { value: raw };
}

const REASONS = {
  unsupported: 'the driver does not report it',
  denied: 'this user may not read it',
  lost: 'the device does not answer any more',
  stale: 'the last reading is too old',
  no_driver: 'no driver is loaded for it',
};

const deviceLabel = (device) => `${device.kind}:${device.index}`;

/// All hosts of a snapshot, the first one first.
export function hostsOf(snapshot) {
  return [snapshot, ...(snapshot.others ?? [])]
    .filter((host) => host.inventory)
    .map((host) => {
      const seenS = host.seen_s ?? host.time_s;
      const view = {
        name: host.host,
        seenS,
        nowS: snapshot.time_s,
        silentS: Math.max(0, snapshot.time_s - seenS),
        inventory: host.inventory,
        leases: host.jobs?.leases ?? [],
        waiting: host.jobs?.waiting ?? [],
        fairness: host.jobs?.fairness,
        past: host.past ?? [],
        drains: host.drains ?? [],
        alerts: host.alerts ?? [],
        runs: host.runs ?? [],
        agent: host.agent, // where it does not answer
        events: (host.events ?? []).filter((event) => event && event.time_s > 0),
        eventsSinceS: host.events_since_s,
      };
      view.knowsPool = !view.agent || view.agent.known_s > 0;
      view.isSilent = view.silentS > SILENT_S;
      view.devices = devicesOf(view);
      return view;
    });
}

/// GPUs and parts of them; the CPUs only where there is no GPU. A GPU that is cut into parts is those parts.
function devicesOf(host) {
  const all = host.inventory.devices ?? [];
  const parents = new Set(all.map((device) => device.parent).filter(Boolean));
  const gpus = all.filter((device) => device.kind !== 'cpu' && !parents.has(device.id));
  return (gpus.length > 0 ? gpus : all).map((device) => viewOf(device, host));
}

/// Whether nobody looks after it, and it is to be heard of.
export function isOpen(alert) {
  return !alert.acknowledged_by && !alert.silenced_until_s;
}

function viewOf(device, host) {
  const leases = host.leases.filter((lease) => lease.device === device.id);
  const drain = host.drains.find((one) => one.device === device.id);
  const status = device.status ?? {};
  const now = (raw) => (host.isSilent ? { reason: 'the host is silent' } : reading(raw));
  const view = {
    key: `${host.name}/${deviceLabel(device)}`,
    host: host.name,
    id: device.id,
    label: deviceLabel(device),
    model: device.model || 'model unknown',
    device,
    status,
    leases,
    drain,
    busy: now(status.busy),
    memoryUsed: now(status.memory_used_bytes),
    memory: reading(device.memory_bytes),
    throttle: now(status.throttle),
    alerts: host.alerts.filter((alert) => alert.device === device.id && isOpen(alert)),
  };
  const began = leases.filter((lease) => lease.job !== undefined && lease.since_s > 0).map((lease) => lease.since_s);
  view.heldS = began.length > 0 ? Math.max(0, host.nowS - Math.min(...began)) : undefined;
  view.holders = [...new Set(leases.map((lease) => lease.user ?? lease.holder).filter(Boolean))];
  view.state = stateOf(view, host);
  return view;
}

/// What the states are called, in the order in which the top sentence counts them.
export const STATES = {
  working: 'working',
  idle: 'held but idle',
  held: 'held, load unknown',
  foreign: 'used without a lease',
  drained: 'drained',
  free: 'free',
  unclear: 'holder unknown',
  lost: 'lost',
  unknown: 'not seen',
};

function stateOf(view, host) {
  if (host.isSilent) return 'unknown';
  if (view.busy.missing === 'lost') return 'lost';
  if (!host.knowsPool) return 'unclear';
  if (view.leases.some((lease) => lease.job !== undefined)) {
    if (view.busy.value === undefined) return 'held';
    return view.busy.value > IDLE ? 'working' : 'idle';
  }
  if (view.leases.some((lease) => lease.holder)) return 'foreign';
  return view.drain || view.leases.some((lease) => lease.barred) ? 'drained' : 'free';
}

/// Seconds for which a series has been idle at its end; undefined where that is not known.
export function idleFor(series, stepS) {
  if (!series || series.length === 0) return undefined;
  let last = series.length - 1;
  while (last >= 0 && series[last] === null) last -= 1;
  let first = last;
  while (first >= 0 && series[first] !== null && series[first] <= IDLE) first -= 1;
  return last < 0 ? undefined : (last - first) * stepS;
}

/// For how many seconds each device has been idle with the job that holds it, by its key, as far as that is known.
export function idleTimes(hosts, histories) {
  const idle = new Map();
  for (const view of hosts.flatMap((host) => host.devices)) {
    const history = histories.get(view.key);
    const seconds = view.state === 'idle' && history ? idleFor(history.measures.busy, history.step_s) : undefined;
    if (seconds !== undefined) idle.set(view.key, Math.min(seconds, view.heldS ?? Infinity));
  }
  return idle;
}

/// The spans of [start, end] in which a lease was held and its device idle, for a minute at least.
export function idleSpans(history, startS, endS) {
  const spans = [];
  const { start_s: beginS, step_s: stepS } = history;
  let from;
  history.measures.busy.forEach((busy, i) => {
    const isIdle = busy !== null && busy <= IDLE;
    const atS = beginS + i * stepS;
    if (isIdle && from === undefined) from = atS;
    if ((!isIdle || i === history.measures.busy.length - 1) && from !== undefined) {
      const span = [Math.max(from, startS), Math.min(isIdle ? atS + stepS : atS, endS)];
      if (span[1] - span[0] >= 60) spans.push(span);
      from = undefined;
    }
  });
  return spans;
}

/// All users of a snapshot, each with a number of a colour that stays while they are there.
export function coloursOf(hosts, count) {
  const users = new Set();
  for (const host of hosts) {
    for (const lease of [...host.leases, ...host.past]) users.add(lease.user ?? lease.holder ?? '');
    for (const job of host.waiting) users.add(job.user);
  }
  users.delete('');
  const taken = new Map();
  const used = new Set();
  for (const user of [...users].sort()) {
    let colour = [...user].reduce((sum, letter) => (sum * 31 + letter.codePointAt(0)) % 9973, 7) % count;
    for (let tried = 0; used.has(colour) && tried < count; tried += 1) colour = (colour + 1) % count;
    used.add(colour);
    taken.set(user, colour);
  }
  return taken;
}

/// The readings of a device: name, what it is, unit. The order is that of the tables.
export const READINGS = [
  ['busy', 'busy', 'ratio'],
  ['memory_used_bytes', 'memory in use', 'bytes'],
  ['memory_busy', 'memory busy', 'ratio'],
  ['sm_active', 'multiprocessors active', 'ratio'],
  ['tensor_active', 'tensor cores active', 'ratio'],
  ['dram_active', 'memory bandwidth in use', 'ratio'],
  ['power_watts', 'power', 'W'],
  ['temperature_c', 'temperature', '°C'],
  ['sm_clock_mhz', 'clock', 'MHz'],
  ['memory_clock_mhz', 'memory clock', 'MHz'],
  ['throttle', 'clocks held down by', 'list'],
  ['ecc_uncorrected', 'memory errors not corrected', 'count'],
  ['xid', 'last fatal error', 'count'],
];
