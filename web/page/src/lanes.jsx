// The lanes: what each device did over time, who held it, and where it was held for nothing.
import { RANGES, addressOf } from './address.js';
import { MARKS, marksOf, marksOfOthers } from './events.js';
import { countBehind, futureRows, futureSpan, projectionsOf } from './future.js';
import { idleSpans } from './model.js';
import { area, barsOf, mean, ticks, timeScale } from './timeline.js';
import { clock, counted, duration, moment, percent } from './text.js';

const ROW = 30;
const LEFT = 132;
const RIGHT = 20;
const TOP = 22;
const FUTURE = 0.28; // of the width, where anything is known of what is to come

/// Pieces of a bar of which nobody knows where it ends.
function fading(x0, x1, pieces = 8) {
  const width = Math.max(2, x1 - x0) / pieces;
  return Array.from({ length: pieces }, (_, i) => ({ at: x0 + i * width, width, opacity: 0.9 * (1 - i / pieces) }));
}

/// What is to come of a device: fainter, the more others it depends on, and fading where nobody knows how long.
function Future({ view, host, x, base, height, toS, colours }) {
  return projectionsOf(view, host).filter(({ from }) => from < toS).map(({ kind, from, to, who, job, name, sure }) => {
    const [x0, x1] = [x(from), x(to === undefined ? toS : Math.min(to, toS))];
    const what = kind === 'held'
      ? `held by ${who}${name ? `, ${name}` : ''} (job ${job}), until ${moment(to)} at the latest`
      : `${who}'s ${name ? `${name} (job ${job})` : `job ${job}`} starts at ${moment(from)} at the latest${to === undefined ? '; for how long is not known' : `, until ${moment(to)}`}`;
    return (
      <g key={`${kind} ${job}`} class={`bar future ${kind} u${colours.get(who) ?? 'none'}`} style={{ opacity: 0.35 + 0.65 * sure }}>
        <title>{`${view.label}: ${what}`}</title>
        {to !== undefined ? <rect x={x0} y={base - height} width={Math.max(2, x1 - x0)} height={height} />
          : fading(x0, x1).map(({ at, width, opacity }) => <rect key={at} class="open" x={at} y={base - height} width={width} height={height} style={{ fillOpacity: opacity }} />)}
        {x1 - x0 > 8 * who.length + 8 && <text x={x0 + 4} y={base - height + 11}>{who}</text>}
      </g>
    );
  });
}

function Marks({ view, marks, x, y }) {
  return marks.map(({ timeS, endS, kind, text }, i) => (
    <g key={`${kind} ${timeS} ${i}`} class={`mark ${kind}`} transform={`translate(${x(timeS).toFixed(1)} ${y})`}>
      <title>{`${view.label}, ${clock(timeS, true)}${endS ? ` to ${clock(endS, true)}` : ''}: ${text}`}</title>
      <path d={MARKS[kind].path} />
    </g>
  ));
}

function Row({ view, host, history, marks, x, y, nowS, fromS, toS, right, colours }) {
  const base = y + ROW - 6;
  const height = ROW - 10;
  const clip = (timeS) => Math.min(Math.max(timeS, fromS), nowS);
  return (
    <g>
      <line class="base" x1={LEFT} x2={right} y1={base} y2={base} />
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
      <Future view={view} host={host} x={x} base={base} height={height} toS={toS} colours={colours} />
      <Marks view={view} marks={marks} x={x} y={y + 5} />
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

/// The marks of the lanes, and what has no lane, in words.
function EventTable({ all, hosts, nowS, fromS }) {
  const rows = all.flatMap(({ host, view, marks }) => marks.map((mark) => ({ host, of: view.label, key: view.key, mark })))
    .concat(hosts.flatMap((host) => marksOfOthers(host, fromS, nowS).map((mark) => ({ host, of: mark.of, key: `${host.name}/${mark.of}`, mark }))))
    .sort((a, b) => b.mark.timeS - a.mark.timeS);
  const known = hosts.map((host) => host.eventsSinceS).filter((timeS) => timeS > fromS);
  return (
    <>
      <table class="events">
        <caption>What has happened in the last {duration(nowS - fromS)}</caption>
        <thead><tr><th>When</th><th>Device</th><th>What</th><th>Of it</th></tr></thead>
        <tbody>
          {rows.map(({ host, of, key, mark }, i) => (
            <tr key={`${key} ${mark.kind} ${mark.timeS} ${i}`} data-event={mark.event && JSON.stringify(mark.event)}>
              <td>{clock(mark.timeS, true)}{mark.endS ? ` to ${clock(mark.endS, true)}` : ''}</td>
              <td>{hosts.length > 1 ? `${host.name} ` : ''}{of}</td>
              <td>{MARKS[mark.kind].name}</td>
              <td class="words">{mark.text}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {rows.length === 0 && <p class="note">Nothing that is known.</p>}
      {known.length > 0 && <p class="note">Checkpoints, runs that began again, splits that changed and alerts that are over are known since {moment(Math.max(...known))}: nobody looked before.</p>}
    </>
  );
}

/// What is to come, in words; or why it is not known.
function FutureTable({ rows, hosts }) {
  return (
    <table class="future">
      <caption>What is to come, by time limits: all of it is sooner where a job ends before its limit</caption>
      <thead><tr><th>Job</th><th>User</th><th>Devices</th><th>Starts</th><th>Ends at the latest</th><th>Why not known</th></tr></thead>
      <tbody>
        {rows.map((row) => (
          <tr key={`${row.host.name} ${row.what} ${row.job}`} data-row={JSON.stringify(row.raw)}>
            <td>{row.job}{row.name ? ` ${row.name}` : ''}</td>
            <td>{row.who}</td>
            <td>{hosts.length > 1 ? `${row.host.name} ` : ''}{row.devices || '–'}</td>
            <td>{row.what === 'holds' ? 'has started' : row.startS ? `${moment(row.startS)}${row.ends > 0 ? `, after ${counted(row.ends, 'job')} there` : ''}` : '–'}</td>
            <td>{row.endS ? moment(row.endS) : '–'}</td>
            <td class="words">{row.unknown || (row.endS ? '' : 'for how long: it has no time limit')}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

export function Lanes({ hosts, histories, nowS, address, colours, width }) {
  const span = RANGES[address.range];
  const fromS = nowS - span;
  const futureS = futureSpan(hosts);
  const right = width - RIGHT;
  const nowX = futureS > 0 ? right - FUTURE * (right - LEFT) : right;
  const x = timeScale({ fromS, nowS, futureS, left: LEFT, nowX, right });
  const devices = hosts.flatMap((host) => host.devices.map((view) => ({ host, view, marks: marksOf(view, host, histories.get(view.key), fromS, nowS) })));
  const kinds = Object.entries(MARKS).filter(([kind]) => devices.some(({ marks }) => marks.some((mark) => mark.kind === kind)));
  const rows = futureRows(hosts);
  const future = futureS > 0 ? ticks(nowS + futureS * 0.1, nowS + futureS * 0.97, 4) : [];
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
        <svg class="lanes" width={width} height={height} role="img" aria-label={`How busy each device was in the last ${duration(span)}, how long it waited for others, who held it, what happened, and what is to come; the tables below say the same`}>
          {ticks(fromS, nowS - (futureS > 0 ? span * 0.06 : 0), futureS > 0 ? 5 : 7).map((at) => (
            <g key={at} class="tick">
              <line x1={x(at)} x2={x(at)} y1={TOP - 4} y2={height} />
              <text x={x(at)} y={TOP - 8}>{span > 86400 ? moment(at) : clock(at)}</text>
            </g>
          ))}
          {futureS > 0 && <rect class="to-come" x={nowX} y={TOP - 4} width={right - nowX} height={height - TOP + 4} />}
          {future.map((at) => (
            <g key={at} class="tick">
              <line x1={x(at)} x2={x(at)} y1={TOP - 4} y2={height} />
              <text x={x(at)} y={TOP - 8}>{futureS >= 86400 ? moment(at) : clock(at)}</text>
            </g>
          ))}
          {devices.map(({ host, view, marks }, i) => (
            <g key={view.key}>
              <text class="label" x="0" y={TOP + i * ROW + 20}>{hosts.length > 1 ? `${host.name} ` : ''}{view.label}</text>
              <text class="now" x={LEFT - 10} y={TOP + i * ROW + 20}>{view.busy.value === undefined ? '?' : percent(view.busy.value)}</text>
              <Row view={view} host={host} history={histories.get(view.key)} x={x} marks={marks} y={TOP + i * ROW} nowS={nowS} fromS={fromS} toS={nowS + futureS} right={right} colours={colours} />
            </g>
          ))}
          <line class="now-line" x1={nowX} x2={nowX} y1={TOP - 4} y2={height} />
          {futureS > 0 && <text class="now-word" x={nowX} y={TOP - 8}>now</text>}
        </svg>
      </div>
      {isUnknown && <p class="note">How busy they were is not known: no readings of this time were kept.</p>}
      <p class="legend">
        <span><svg width="26" height="12" aria-hidden="true" class="lanes"><g class="bar u0"><rect width="26" height="12" /></g></svg>held</span>
        <span><svg width="26" height="12" aria-hidden="true" class="lanes"><g class="bar u0"><rect width="26" height="12" /><path class="busy" d="M0 12V5H8V3H16V6H26V12Z" /></g></svg>busy: a kernel ran</span>
        <span><svg width="26" height="12" aria-hidden="true" class="lanes"><g class="bar u0"><rect width="26" height="12" /><path class="busy" d="M0 12V5H8V3H16V6H26V12Z" /><path class="waits" d="M0 12V9H8V8H16V10H26V12Z" /></g></svg>waited for others of its run</span>
        <span><svg width="26" height="12" aria-hidden="true" class="lanes"><g class="bar u0"><rect width="26" height="12" /><rect class="hatch" width="26" height="12" /></g></svg>held and idle</span>
        {futureS > 0 && <span><svg width="26" height="12" aria-hidden="true" class="lanes"><g class="bar future starts u0"><rect x="1" width="24" height="12" /></g></svg>to come, by time limits; fainter the more jobs must end before</span>}
        {kinds.map(([kind, { name, path }]) => (
          <span key={kind}><svg width="12" height="12" viewBox="-6 -6 12 12" aria-hidden="true" class={`mark ${kind}`}><path d={path} /></svg>{name}</span>
        ))}
      </p>
      <details>
        <summary>Events as a table</summary>
        <div class="scroll" tabIndex="0" role="region" aria-label="Events"><EventTable all={devices} hosts={hosts} nowS={nowS} fromS={fromS} /></div>
      </details>
      {rows.length > 0 && (
        <details>
          <summary>What is to come, as a table</summary>
          <div class="scroll" tabIndex="0" role="region" aria-label="What is to come"><FutureTable rows={rows} hosts={hosts} /></div>
          {countBehind(hosts) > 0 && <p class="note">{counted(countBehind(hosts), 'more job')} waiting: only what becomes of the first in turn is worked out.</p>}
        </details>
      )}
      <details>
        <summary>Leases as a table</summary>
        <div class="scroll" tabIndex="0" role="region" aria-label="Leases"><LeaseTable hosts={hosts} histories={histories} fromS={fromS} nowS={nowS} /></div>
      </details>
    </section>
  );
}
