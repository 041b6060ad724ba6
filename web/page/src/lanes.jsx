// The lanes: what each device did over time, who held it, and where it was held for nothing.
import { RANGES, addressOf } from './address.js';
import { idleSpans } from './model.js';
import { area, barsOf, mean, ticks } from './timeline.js';
import { clock, duration, moment, percent } from './text.js';

const ROW = 30;
const LEFT = 132;
const RIGHT = 20;
const TOP = 22;

function Row({ view, host, history, x, y, nowS, fromS, colours, width }) {
  const base = y + ROW - 6;
  const height = ROW - 10;
  const clip = (timeS) => Math.min(Math.max(timeS, fromS), nowS);
  return (
    <g>
      <line class="base" x1={LEFT} x2={width - RIGHT} y1={base} y2={base} />
      {history && <path class="busy" d={area(history, fromS, nowS, x, base, height)} />}
      {barsOf(view, host).map((lease) => {
        const [startS, endS] = [clip(lease.since_s), clip(lease.ended_s ?? nowS)];
        if (endS <= startS) return null;
        const who = lease.user ?? lease.holder ?? 'nobody';
        const title = `${view.label}: ${who}${lease.name ? `, ${lease.name}` : ''}, ${clock(lease.since_s)} to ${lease.ended_s ? clock(lease.ended_s) : 'now'}`;
        const w = x(endS) - x(startS);
        return (
          <g key={`${lease.job} ${lease.since_s}`} class={`bar u${colours.get(who) ?? 'none'}${lease.job === undefined ? ' foreign' : ''}`}>
            <title>{title}</title>
            <rect x={x(startS)} y={base - height} width={w} height={height} />
            {history && <path class="busy" d={area(history, startS, endS, x, base, height)} />}
            {history && lease.job !== undefined && <path class="waits" d={area(history, startS, endS, x, base, height, 'waiting')} />}
            {history && lease.job !== undefined && idleSpans(history, startS, endS).map(([a, b]) => (
              <rect key={a} class="hatch" x={x(a)} y={base - height} width={x(b) - x(a)} height={height}>
                <title>{`held by ${who} and idle for ${duration(b - a)}`}</title>
              </rect>
            ))}
            {w > 8 * who.length + 8 && <text x={x(startS) + 4} y={base - height + 11}>{who}</text>}
          </g>
        );
      })}
    </g>
  );
}

/// What the lanes show of a lease: its part of the chosen time in which a kernel ran, or in which it waited for others.
function part(history, lease, fromS, nowS, measure) {
  const known = history && mean(history, Math.max(fromS, lease.since_s), lease.ended_s ?? nowS, measure);
  return known === undefined ? '–' : percent(known);
}

function LeaseTable({ hosts, histories, fromS, nowS }) {
  const rows = hosts.flatMap((host) => host.devices.flatMap((view) => barsOf(view, host).map((lease) => ({ host, view, lease }))));
  rows.sort((a, b) => b.lease.since_s - a.lease.since_s);
  return (
    <table class="leases">
      <caption>Who has had what; busy and waiting in the last {duration(nowS - fromS)}</caption>
      <thead><tr><th>Device</th><th>User</th><th>Job</th><th>From</th><th>To</th><th>For</th><th>Busy</th><th>Waited for others</th></tr></thead>
      <tbody>
        {rows.map(({ host, view, lease }) => (
          <tr key={`${view.key} ${lease.job} ${lease.since_s}`} data-row={JSON.stringify(lease)}>
            <td>{hosts.length > 1 ? `${host.name} ` : ''}{view.label}</td>
            <td>{lease.user ?? lease.holder ?? lease.barred}</td>
            <td>{lease.job === undefined ? 'no lease' : `${lease.job}${lease.name ? ` ${lease.name}` : ''}`}</td>
            <td>{moment(lease.since_s)}</td>
            <td>{lease.ended_s ? moment(lease.ended_s) : 'now'}</td>
            <td>{duration((lease.ended_s ?? nowS) - lease.since_s)}</td>
            <td>{part(histories.get(view.key), lease, fromS, nowS, 'busy')}</td>
            <td>{part(histories.get(view.key), lease, fromS, nowS, 'waiting')}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

export function Lanes({ hosts, histories, nowS, address, colours, width }) {
  const span = RANGES[address.range];
  const fromS = nowS - span;
  const x = (timeS) => LEFT + ((timeS - fromS) / span) * (width - LEFT - RIGHT);
  const devices = hosts.flatMap((host) => host.devices.map((view) => ({ host, view })));
  const height = TOP + devices.length * ROW + 8;
  const isUnknown = devices.every(({ view }) => !(histories.get(view.key)?.measures.busy ?? []).some((busy) => busy !== null));
  return (
    <section aria-labelledby="lanes-title">
      <div class="heading">
        <h2 id="lanes-title">Over time</h2>
        <nav aria-label="Range">
          {Object.keys(RANGES).map((range) => (
            <a key={range} href={addressOf({ ...address, range })} aria-current={range === address.range ? 'true' : undefined}>{range}</a>
          ))}
        </nav>
      </div>
      <div class="scroll" tabIndex="0" role="region" aria-label="Devices over time">
        <svg class="lanes" width={width} height={height} role="img" aria-label={`How busy each device was in the last ${duration(span)}, how long it waited for others, and who held it; the table below says the same`}>
          {ticks(fromS, nowS).map((at) => (
            <g key={at} class="tick">
              <line x1={x(at)} x2={x(at)} y1={TOP - 4} y2={height} />
              <text x={x(at)} y={TOP - 8}>{span > 86400 ? moment(at) : clock(at)}</text>
            </g>
          ))}
          {devices.map(({ host, view }, i) => (
            <g key={view.key}>
              <text class="label" x="0" y={TOP + i * ROW + 20}>{hosts.length > 1 ? `${host.name} ` : ''}{view.label}</text>
              <text class="now" x={LEFT - 10} y={TOP + i * ROW + 20}>{view.busy.value === undefined ? '?' : percent(view.busy.value)}</text>
              <Row view={view} host={host} history={histories.get(view.key)} x={x} y={TOP + i * ROW} nowS={nowS} fromS={fromS} colours={colours} width={width} />
            </g>
          ))}
          <line class="now-line" x1={x(nowS)} x2={x(nowS)} y1={TOP - 4} y2={height} />
        </svg>
      </div>
      {isUnknown && <p class="note">How busy they were is not known: no readings of this time were kept.</p>}
      <p class="legend">
        <span><svg width="26" height="12" aria-hidden="true" class="lanes"><g class="bar u0"><rect width="26" height="12" /></g></svg>held</span>
        <span><svg width="26" height="12" aria-hidden="true" class="lanes"><g class="bar u0"><rect width="26" height="12" /><path class="busy" d="M0 12V5H8V3H16V6H26V12Z" /></g></svg>busy: a kernel ran</span>
        <span><svg width="26" height="12" aria-hidden="true" class="lanes"><g class="bar u0"><rect width="26" height="12" /><path class="busy" d="M0 12V5H8V3H16V6H26V12Z" /><path class="waits" d="M0 12V9H8V8H16V10H26V12Z" /></g></svg>waited for others of its run</span>
        <span><svg width="26" height="12" aria-hidden="true" class="lanes"><g class="bar u0"><rect width="26" height="12" /><rect class="hatch" width="26" height="12" /></g></svg>held and idle</span>
      </p>
      <details>
        <summary>Leases as a table</summary>
        <div class="scroll" tabIndex="0" role="region" aria-label="Leases"><LeaseTable hosts={hosts} histories={histories} fromS={fromS} nowS={nowS} /></div>
      </details>
    </section>
  );
}
