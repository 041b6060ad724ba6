// Tables: every device with every reading, the queue, alerts. What is drawn elsewhere stands here in words and numbers.
import { addressOf } from './address.js';
import { READINGS, STATES, reading } from './model.js';
import { missingReasons, queueSentence } from './sentences.js';
import { bytes, clock, counted, duration, moment, ofBytes, percent } from './text.js';

/// A reading with its unit.
export function valueText(value, unit) {
  if (Array.isArray(value)) return value.length === 0 ? 'nothing' : value.join(', ').replaceAll('_', ' ');
  if (unit === 'ratio') return percent(value);
  if (unit === 'bytes') return bytes(value);
  if (unit === 'count') return String(value);
  return `${Math.round(value)} ${unit}`;
}

/// What a host said that has been silent since is a reason, and no value.
function old(raw, unit, silentS) {
  const { value, reason } = reading(raw);
  const before = value === undefined ? reason : valueText(value, unit);
  return { reason: `the host has been silent for ${duration(silentS)}; before: ${before}` };
}

/// The value; or a dash, whose reason is told to whoever asks. `raw` is as in the JSON.
function Cell({ raw, unit, name, text, silentS }) {
  const { value, reason, timeS } = silentS > 0 ? old(raw, unit, silentS) : reading(raw);
  const asJson = raw === undefined ? undefined : JSON.stringify(raw);
  if (value === undefined)
    return <td data-reading={name} data-json={asJson} class="missing" title={reason}><abbr title={reason}>–</abbr><span class="unseen">{reason}</span></td>;
  return <td data-reading={name} data-json={asJson} title={timeS ? `${value}, read at ${clock(timeS, true)}` : String(value)}>{text ?? valueText(value, unit)}</td>;
}

const COLUMNS = ['busy', 'memory_used_bytes', 'power_watts', 'temperature_c', 'sm_clock_mhz', 'tensor_active'];
const NAMES = new Map(READINGS.map(([key, name, unit]) => [key, { name, unit }]));

/// Why there are dashes: each reason once, with what it is the reason for.
function MissingReasons({ hosts }) {
  const reasons = missingReasons(hosts, COLUMNS);
  if (reasons.length === 0) return null;
  return (
    <ul class="reasons">
      {reasons.map(({ reason, of }) => <li key={reason}>– {of}: {reason}</li>)}
    </ul>
  );
}

export function DeviceTable({ hosts, address }) {
  return (
    <section aria-labelledby="readings-title">
      <h2 id="readings-title">Readings</h2>
      <div class="scroll" tabIndex="0" role="region" aria-label="Table of readings">
        <table class="devices">
          <thead>
            <tr>
              {hosts.length > 1 && <th scope="col">Host</th>}
              <th scope="col">Device</th><th scope="col">Model</th><th scope="col">State</th><th scope="col">Held by</th>
              {COLUMNS.map((key) => <th key={key} scope="col">{NAMES.get(key).name}</th>)}
            </tr>
          </thead>
          <tbody>
            {hosts.flatMap((host) => host.devices.map((view) => (
              <tr key={view.key} data-device={view.id} class={view.state}>
                {hosts.length > 1 && <td>{host.name}</td>}
                <th scope="row"><a href={addressOf({ ...address, gpu: view.key })}>{view.label}</a></th>
                <td>{view.model}</td>
                <td class="state">{STATES[view.state]}</td>
                <td>{view.holders.join(', ')}</td>
                {COLUMNS.map((key) => (
                  <Cell key={key} name={key} raw={view.status[key]} unit={NAMES.get(key).unit} silentS={host.isSilent ? host.silentS : 0}
                    text={key === 'memory_used_bytes' && view.memory.value && view.memoryUsed.value !== undefined ? ofBytes(view.memoryUsed.value, view.memory.value) : undefined} />
                ))}
              </tr>
            )))}
          </tbody>
        </table>
      </div>
      <MissingReasons hosts={hosts} />
    </section>
  );
}

export function Queue({ hosts, nowS }) {
  const waiting = hosts.flatMap((host) => host.waiting.map((job) => ({ host, job })));
  return (
    <section aria-labelledby="queue-title">
      <h2 id="queue-title">Queue{hosts.some((host) => host.agent?.known_s) && <small> as it was</small>}</h2>
      {waiting.length === 0 ? <p class="note">{hosts.every((host) => host.knowsPool) ? 'Nobody waits.' : 'Not known.'}</p> : (
        <ol class="queue">
          {waiting.map(({ host, job }) => (
            <li key={`${host.name} ${job.id}`} data-row={JSON.stringify(job)}>
              {queueSentence(job, nowS)} <code>remuda why {job.id}</code>
            </li>
          ))}
        </ol>
      )}
      {hosts.map((host) => host.fairness?.users.length > 0 && <Fairness key={host.name} host={host} isOne={hosts.length === 1} />)}
    </section>
  );
}

/// Who has used how much of late, in the order in which their jobs have their turns.
function Fairness({ host, isOne }) {
  const { users, half_life_s: halfLifeS } = host.fairness;
  return (
    <div class="scroll" tabIndex="0" role="region" aria-label={`Who has had how much of ${host.name}`}>
      <table class="fairness">
        <caption>Who has had least goes first{isOne ? '' : ` on ${host.name}`}; an hour counts half after {duration(halfLifeS)}</caption>
        <thead><tr><th scope="col">User</th><th scope="col">Device time</th><th scope="col">Part</th><th scope="col">Holds</th><th scope="col">Waiting</th></tr></thead>
        <tbody>
          {users.map((one) => (
            <tr key={one.user} data-row={JSON.stringify(one)}>
              <th scope="row">{one.user}</th>
              <td>{duration(one.usage_s)}</td>
              <td>{percent(one.part)}</td>
              <td>{counted(Math.round(one.holds * 100) / 100, 'device')}</td>
              <td>{counted(one.waiting, 'job')}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

export function Alerts({ hosts, nowS, address }) {
  const alerts = hosts.flatMap((host) => host.alerts.map((alert) => ({ host, alert, view: host.devices.find((one) => one.id === alert.device) })));
  return (
    <section aria-labelledby="alerts-title">
      <h2 id="alerts-title">Alerts</h2>
      {alerts.length === 0 ? <p class="note">None.</p> : (
        <ul class="alerts">
          {alerts.map(({ host, alert, view }) => (
            <li key={`${host.name} ${alert.rule} ${alert.device}`}>
              <strong>{alert.rule}</strong>{view && <>, <a href={addressOf({ ...address, gpu: view.key })}>{hosts.length > 1 ? `${host.name} ` : ''}{view.label}</a></>}
              {alert.since_s && <>, for {duration(nowS - alert.since_s)}</>}: {alert.text}
              {alert.value !== undefined && alert.limit !== undefined && <small> ({String(alert.value)}; limit {String(alert.limit)})</small>}
              {alert.acknowledged_by && <small> acknowledged by {alert.acknowledged_by}</small>}
              {alert.silenced_until_s > 0 && <small> silenced for {duration(alert.silenced_until_s - nowS)}</small>}
              {alert.command && <code>{alert.command}</code>}
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

/// Everything known of one device, with its reasons.
export function ReadingList({ view }) {
  return (
    <dl class="readings">
      {READINGS.map(([key, name, unit]) => {
        const { value, reason, timeS } = reading(view.status[key]);
        return (
          <div key={key} class={value === undefined ? 'missing' : ''}>
            <dt>{name}</dt>
            <dd title={timeS ? `read at ${moment(timeS)}` : undefined}>{value === undefined ? reason : valueText(value, unit)}</dd>
          </div>
        );
      })}
    </dl>
  );
}
