// What is to come, as far as time limits say: until when leases last, and when those that wait start. Pure.

const SPANS_S = [900, 1800, 3600, 7200, 14400, 28800, 43200, 86400];
export const FURTHEST_S = SPANS_S.at(-1);

/// How sure it is that something is as it is drawn, from 0 to 1: it is by the time limits of so many other jobs, and who
/// ends before his limit makes it sooner.
export const sureness = (ends) => 1 / (1 + ends);

/// Why nothing is known of what is to come on a host; empty where something may be.
const unknownOf = (host) => (host.isSilent ? 'the host is silent' : host.agent ? 'the agent does not answer' : '');

/// What becomes of a device: {kind, from, to, who, job, sure}, by time. `to` undefined: nobody knows how long. A lease that
/// has no time limit is not there, and neither is a job of which the start or the device is not known.
export function projectionsOf(view, host) {
  if (unknownOf(host)) return [];
  const held = host.leases
    .filter((lease) => lease.device === view.id && lease.job !== undefined && lease.until_s > host.nowS)
    .map((lease) => ({ kind: 'held', from: host.nowS, to: lease.until_s, who: lease.user, job: lease.job, name: lease.name, sure: 1 }));
  const starts = firstOf(host)
    .filter((job) => job.starts_s >= host.nowS && job.starts_on?.includes(view.id))
    .map((job) => ({ kind: 'starts', from: job.starts_s, to: job.time_limit_s > 0 ? job.starts_s + job.time_limit_s : undefined, who: job.user, job: job.id, name: job.name, sure: sureness(job.starts_after ?? 0) }));
  return [...held, ...starts].sort((a, b) => a.from - b.from);
}

/// How many seconds of the time to come are drawn: enough for what is known, and none where nothing is.
export function futureSpan(hosts) {
  const known = hosts.flatMap((host) => host.devices.flatMap((view) => projectionsOf(view, host).flatMap(({ kind, from, to }) =>
    [kind === 'starts' ? from - host.nowS + 600 : 0, (to ?? from) - host.nowS])));
  if (known.length === 0) return 0;
  const most = Math.max(...known);
  return SPANS_S.find((span) => span >= most) ?? FURTHEST_S;
}

/// The first jobs in turn: of others, which may be thousands, nothing is worked out.
const firstOf = (host) => host.waiting.filter((job) => job.starts_s || job.starts_unknown);

/// How many jobs wait behind those.
export const countBehind = (hosts) => hosts.reduce((sum, host) => sum + host.waiting.length - firstOf(host).length, 0);

/// Rows of the table: each lease and each of the first jobs that wait, with what is known, or why it is not.
export function futureRows(hosts) {
  return hosts.flatMap((host) => {
    const labels = (ids) => ids.map((id) => host.devices.find((view) => view.id === id)?.label ?? id).join(', ');
    const jobs = new Map();
    for (const lease of host.leases.filter((one) => one.job !== undefined)) {
      const row = jobs.get(lease.job) ?? { host, job: lease.job, who: lease.user, name: lease.name, ids: [], endS: lease.until_s > 0 ? lease.until_s : undefined, raw: lease };
      row.ids.push(lease.device);
      jobs.set(lease.job, row);
    }
    const held = [...jobs.values()].map((row) => ({ ...row, what: 'holds', devices: labels(row.ids), unknown: row.endS ? '' : 'it has no time limit' }));
    const waiting = firstOf(host).map((job) => {
      const unknown = job.starts_s ? '' : job.starts_unknown;
      const endS = job.starts_s && job.time_limit_s > 0 ? job.starts_s + job.time_limit_s : undefined;
      return { host, job: job.id, who: job.user, name: job.name, what: 'waits', startS: job.starts_s, endS, devices: labels(job.starts_on ?? []), unknown, ends: job.starts_after, raw: job };
    });
    return [...held, ...waiting].map((row) => (unknownOf(host) ? { ...row, startS: undefined, endS: undefined, unknown: unknownOf(host) } : row));
  });
}
