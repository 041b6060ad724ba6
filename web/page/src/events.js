// What has happened to devices, as marks on their lanes. Pure.

/// Kinds of marks, in the order of the legend: what each is called, and its outline around 0 0.
export const MARKS = {
  error: { name: 'device error', path: 'M-4-4L4 4M4-4L-4 4' },
  failed: { name: 'job failed', path: 'M-4-4H4V4H-4Z' },
  alert: { name: 'alert began', path: 'M0-5L5 4H-5Z' },
  throttled: { name: 'clocks held down', path: 'M0 5L5-4H-5Z' },
  checkpoint: { name: 'checkpoint', path: 'M-3.5 0A3.5 3.5 0 1 0 3.5 0A3.5 3.5 0 1 0-3.5 0Z' },
  restart: { name: 'began again', path: 'M-4-5L4 0L-4 5Z' },
  rebalance: { name: 'split changed', path: 'M0-5L5 0L0 5L-5 0Z' },
};

/// The times in which heat or power held down the clocks, as a history has them: [from, to].
export function throttledSpans(history) {
  const { start_s: startS, step_s: stepS, measures } = history;
  const spans = [];
  (measures.throttled ?? []).forEach((part, i) => {
    if (!(part > 0)) return;
    const atS = startS + i * stepS;
    if (spans.at(-1)?.[1] === atS) spans.at(-1)[1] = atS + stepS;
    else spans.push([atS, atS + stepS]);
  });
  return spans;
}

/// Whether a job had the device at that time.
const had = (leases, device, { job, time_s: atS }) =>
  leases.some((lease) => lease.job === job && lease.device === device && lease.since_s <= atS && (lease.ended_s ?? Infinity) >= atS);

const markOf = (event) => ({ timeS: event.time_s, kind: event.kind in MARKS ? event.kind : 'alert', text: event.text || event.kind, event });

/// What happened between two times to none of the devices that have a lane, as to the agent, or a folder on a full disk:
/// as marksOf(), and `of`, what it happened to.
export function marksOfOthers(host, fromS, toS) {
  const shown = new Set(host.devices.map((view) => view.id));
  return host.events
    .filter(({ devices, time_s: atS }) => devices?.length > 0 && !devices.some((id) => shown.has(id)) && atS >= fromS && atS <= toS)
    .map((event) => ({ ...markOf(event), of: event.devices.join(', ') }));
}

/// What happened to a device between two times, oldest first: {timeS, kind, text, event}, where `event` is what the
/// snapshot said, if it did. A run that names no devices means those of its job.
export function marksOf(view, host, history, fromS, toS) {
  const leases = [...host.past, ...host.leases];
  const told = host.events
    .filter((event) => (event.devices?.length > 0 ? event.devices.includes(view.id) : had(leases, view.id, event)))
    .map(markOf);
  const failed = host.past
    .filter((lease) => lease.device === view.id && lease.failed)
    .map((lease) => ({ timeS: lease.ended_s, kind: 'failed', text: `${lease.user}'s job ${lease.job} failed${lease.why ? `: ${lease.why}` : ''}` }));
  const throttled = (history ? throttledSpans(history) : [])
    .map(([timeS, endS]) => ({ timeS, endS, kind: 'throttled', text: 'heat or power held down its clocks' }))
    .filter(({ timeS, endS }) => !told.some((one) => one.kind === 'throttled' && one.timeS >= timeS - 120 && one.timeS <= endS + 120));
  return [...told, ...failed, ...throttled].filter(({ timeS }) => timeS >= fromS && timeS <= toS).sort((a, b) => a.timeS - b.timeS);
}
