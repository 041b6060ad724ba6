// The sentences of the page: what a person would say who has looked at all of it. Pure.
import { NOT_READ, READINGS, STATES, isOpen, reading } from './model.js';
import { counted, duration, percent } from './text.js';

/// "8 GPUs of 3 kinds on 2 hosts: 5 working, 1 held but idle 42 min, 2 free; 3 waiting, the next starts within 20 min; 1 alert." `idleS` has the seconds
/// of devices that are held and idle, by their keys, as far as they are known.
export function topSentence(hosts, idleS = new Map()) {
  const devices = hosts.flatMap((host) => host.devices);
  const thing = devices.some((device) => device.device.kind !== 'cpu') || devices.length === 0 ? 'GPU' : 'CPU device';
  const kinds = new Set(devices.map((device) => device.model)).size;
  const states = Object.keys(STATES)
    .map((state) => stateText(state, devices, hosts, idleS))
    .filter(Boolean);
  const alerts = hosts.reduce((sum, host) => sum + host.alerts.filter(isOpen).length, 0);
  const what = `${counted(devices.length, thing)}${kinds > 1 ? ` of ${kinds} kinds` : ''} on ${counted(hosts.length, 'host')}`;
  return [
    `${what}${states.length > 0 ? `: ${states.join(', ')}` : ''}`,
    waitingText(hosts),
    alerts > 0 ? counted(alerts, 'alert') : 'no alerts',
  ].join('; ').concat('.');
}

/// "3 waiting, the next starts within 20 min"
function waitingText(hosts) {
  const waiting = hosts.flatMap((host) => host.waiting);
  const { nowS } = hosts[0] ?? {};
  const starts = waiting.map((job) => job.starts_s).filter((startsS) => startsS > nowS);
  if (waiting.length === 0) return hosts.every((host) => host.knowsPool) ? 'nobody waits' : 'the queue is not known';
  return `${waiting.length} waiting${starts.length > 0 ? `, the next starts within ${duration(Math.min(...starts) - nowS)}` : ''}`;
}

function stateText(state, devices, hosts, idleS) {
  const these = devices.filter((device) => device.state === state);
  if (these.length === 0) return '';
  let text = `${these.length} ${STATES[state]}`;
  if (state === 'idle') {
    const known = these.map((device) => idleS.get(device.key)).filter((seconds) => seconds >= 60);
    if (known.length > 0) text += these.length === 1 ? ` ${duration(known[0])}` : ` (one for ${duration(Math.max(...known))})`;
  }
  if (state === 'unknown') {
    const silent = hosts.filter((host) => host.isSilent);
    text += `, as ${silent.map((host) => `${host.name} has been silent for ${duration(host.silentS)}`).join(' and ')}`;
  }
  return text;
}

/// How old what is shown of leases and queue is, of a host whose agent does not answer; empty where it does. `asOf`: when it
/// was known, as a clock shows it.
export function agentSentence({ name, nowS, agent, knowsPool }, asOf) {
  if (!agent) return '';
  if (!knowsPool) return `the agent of ${name} does not answer: nothing is known of leases and queue`;
  return `the agent of ${name} has not answered for ${duration(nowS - agent.known_s)}: leases and queue as of ${asOf}`;
}

/// "ana's fit (job 7)"
const owned = (user, name, job) => `${user}'s ${name ? `${name} (job ${job})` : `job ${job}`}`;

/// "last checkpoint 12 min ago, after step 1800, wanted every 10 min"; empty of a run that has none, and wants none.
function checkpointText(run, seenS) {
  const { at_s: atS = seenS, checkpoint_step: step = 0, checkpoint_age_s: age = 0, checkpoint_every_s: every = 0 } = run;
  if (step <= 0 && every <= 0) return '';
  const ago = duration(age + Math.max(0, seenS - atS));
  const wanted = every > 0 ? `, wanted every ${duration(every)}` : '';
  return step > 0 ? `last checkpoint ${ago} ago, after step ${step}${wanted}` : `no checkpoint for ${ago}${wanted}`;
}

/// How a run goes: how far it is, how long it takes, for how much of it its devices wait for each other, and how old its
/// last checkpoint is. `seenS`: when its host was seen.
export function runSentence({ job, user, name, run = {} }, seenS) {
  const { step = 0, steps = 0, step_s: stepS = 0 } = run;
  let text = `${owned(user, name, job)} is at step ${step}`;
  if (steps > 0) text += ` of ${steps}`;
  if (stepS > 0) text += stepS < 1 ? `, ${Math.round(1000 * stepS)} ms each` : `, ${stepS.toFixed(1)} s each`;
  if (stepS > 0 && steps > step) text += `, ${duration(stepS * (steps - step))} left`;
  const known = (run.parts ?? []).map((part) => part.waiting).filter((part) => typeof part === 'number');
  const waiting = known.reduce((sum, part) => sum + part, 0);
  if (known.length > 1) text += `; its ${counted(known.length, 'device')} wait ${percent(waiting / known.length)} of the time for each other`;
  const kept = checkpointText(run, seenS);
  return kept ? `${text}; ${kept}` : text;
}

/// Why one job waits.
export function queueSentence(job, nowS) {
  const count = job.request?.count ?? 1;
  const waited = job.submitted_s ? ` and has waited ${duration(nowS - job.submitted_s)}` : '';
  const starts = job.starts_s > nowS ? `; it starts within ${duration(job.starts_s - nowS)}` : '';
  const less = (job.would_start ?? []).map(({ change }) => change);
  const wouldStart = less.length > 0 ? `; it would start now ${less.join(', or ')}` : '';
  return `${owned(job.user, job.name, job.id)} wants ${counted(count, 'device')}${waited}: ${job.why || 'its turn has not come'}${starts}${wouldStart}`;
}

/// "3.20 EUR", "at least 3.20 EUR" where some of it is not known; empty where nothing is.
export function costText({ cost, currency, cost_is_complete: isWhole = true } = {}) {
  return cost === undefined ? '' : `${isWhole ? '' : 'at least '}${cost.toFixed(2)} ${currency}`;
}

/// Why readings are missing: each reason once, with the devices and readings that it is the reason for. What no device of
/// a host was asked for is left out.
export function missingReasons(hosts, keys) {
  const names = new Map(READINGS.map(([key, name]) => [key, name]));
  const found = new Map();
  for (const host of hosts)
    for (const view of host.devices)
      for (const key of keys) {
        const { reason } = host.isSilent ? { reason: `${host.name} has been silent for ${duration(host.silentS)}` } : reading(view.status[key]);
        if (!reason || reason === NOT_READ) continue;
        const of = found.get(reason) ?? found.set(reason, new Map()).get(reason);
        const label = hosts.length > 1 ? `${host.name} ${view.label}` : view.label;
        of.set(label, [...(of.get(label) ?? []), names.get(key)]);
      }
  return [...found].map(([reason, of]) => ({ reason, of: grouped(of) }));
}

/// "clock of gpu:5; clock, power of gpu:1, gpu:2"
function grouped(of) {
  const byWhat = new Map();
  for (const [label, what] of of) byWhat.set(what.join(', '), [...(byWhat.get(what.join(', ')) ?? []), label]);
  return [...byWhat].map(([what, labels]) => `${what} of ${labels.join(', ')}`).join('; ');
}

/// What a chip says to those who cannot see it.
export function deviceSentence(view) {
  if (view.state === 'unknown')
    return `${view.label}, ${view.model}: not seen${view.holders.length > 0 ? `; last held by ${view.holders.join(' and ')}` : ''}`;
  const holders = view.holders.length > 0 ? ` by ${view.holders.join(' and ')}` : '';
  const state = view.state === 'working' ? `held${holders}, working` : `${STATES[view.state]}${holders}`;
  const busy = view.busy.value === undefined ? `busy unknown: ${view.busy.reason}` : `busy ${Math.round(view.busy.value * 100)} %`;
  return `${view.label}, ${view.model}: ${state}; ${busy}`;
}
