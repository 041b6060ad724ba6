// The side panel: one device, all that is known of it, and what it did over the chosen time.
import { useEffect, useRef, useState } from 'preact/hooks';
import uPlot from 'uplot';
import { RANGES, addressOf } from './address.js';
import { STATES, reading } from './model.js';
import { costText } from './sentences.js';
import { fetchHistory } from './stream.js';
import { ReadingList } from './tables.jsx';
import { clock, duration, moment, ofBytes } from './text.js';

const CHARTS = [
  ['busy', 'busy, %', 100],
  ['memory_used_bytes', 'memory, GiB', 1 / 2 ** 30],
  ['power_watts', 'power, W', 1],
  ['temperature_c', 'temperature, °C', 1],
];
const POINTS = 240;

function Chart({ history, measure, name, factor, most }) {
  const place = useRef();
  useEffect(() => {
    const style = getComputedStyle(place.current);
    const values = history.measures[measure];
    const x = values.map((_, i) => history.start_s + i * history.step_s);
    const axis = { stroke: style.getPropertyValue('--ink-2'), grid: { stroke: style.getPropertyValue('--line'), width: 1 }, ticks: { show: false }, font: '11px system-ui, sans-serif' };
    const plot = new uPlot(
      {
        width: place.current.clientWidth,
        height: 110,
        cursor: { sync: { key: 'device' }, y: false, drag: { x: false, y: false } },
        legend: { show: false },
        scales: { y: { range: (_, low, high) => [Math.min(0, low), most ?? Math.max(high * 1.1, 1)] } },
        axes: [{ ...axis, size: 20, values: (_, at) => at.map((one) => clock(one)) }, { ...axis, size: 40 }],
        series: [{}, { label: name, stroke: style.getPropertyValue('--accent'), width: 1.25, fill: style.getPropertyValue('--accent-soft'), spanGaps: false, points: { show: false } }],
      },
      [x, values.map((value) => (value === null ? null : value * factor))],
      place.current,
    );
    return () => plot.destroy();
  }, [history, measure]);
  const isKnown = history.measures[measure].some((value) => value !== null);
  return (
    <figure class={isKnown ? '' : 'unknown'}>
      <figcaption>{name}{isKnown ? '' : ': not known for this time'}</figcaption>
      <div ref={place} class="plot" aria-hidden="true" />
    </figure>
  );
}

function Charts({ view, token, nowS, range }) {
  const [history, setHistory] = useState(null);
  const step = Math.floor(nowS / Math.max(2, RANGES[range] / POINTS));
  useEffect(() => {
    let isCurrent = true;
    const query = { host: view.host, device: view.id, measures: CHARTS.map(([measure]) => measure), from: nowS - RANGES[range], to: nowS, points: POINTS };
    fetchHistory(token, query).then((got) => isCurrent && setHistory(got));
    return () => { isCurrent = false; };
  }, [view.key, range, step]);
  if (!history) return null;
  const memory = view.memory.value ? view.memory.value / 2 ** 30 : undefined;
  const most = { busy: 100, memory_used_bytes: memory };
  return CHARTS.map(([measure, name, factor]) => <Chart key={measure} history={history} measure={measure} name={name} factor={factor} most={most[measure]} />);
}

function Lease({ lease, nowS }) {
  if (lease.job === undefined) return <p>{lease.barred ? `Barred: ${lease.barred}` : `Used by ${lease.holder} without a lease`}</p>;
  return (
    <p>
      Held by <strong>{lease.user}</strong>{lease.name ? `, ${lease.name}` : ''} (job {lease.job}), for {duration(nowS - lease.since_s)}
      {lease.share < 1 && `, ${Math.round(lease.share * 100)} % of it`}
      {lease.until_s > 0 && `, until ${moment(lease.until_s)} at the latest`}
      {costText(lease.use) && `; it has cost ${costText(lease.use)} so far`}
      {lease.command && <code class="command">{lease.command.join(' ')}</code>}
      <code>remuda show {lease.job}</code>
    </p>
  );
}

function Processes({ raw }) {
  const { value, reason } = reading(raw);
  if (value === undefined) return <p class="note">Processes: {reason}.</p>;
  if (value.length === 0) return <p class="note">No process has it open.</p>;
  return (
    <table>
      <caption>Processes</caption>
      <thead><tr><th>Number</th><th>User</th><th>Memory</th><th>Command</th></tr></thead>
      <tbody>
        {value.map((process) => (
          <tr key={process.pid}>
            <td>{process.pid}</td>
            {['user', 'memory_bytes', 'command'].map((key) => {
              const one = reading(process[key]);
              return <td key={key} title={one.reason}>{one.value === undefined ? '–' : key === 'memory_bytes' ? `${(one.value / 2 ** 30).toFixed(1)} GiB` : one.value}</td>;
            })}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

export function Panel({ view, token, nowS, address }) {
  const title = useRef();
  useEffect(() => title.current?.focus({ preventScroll: true }), [view.key]);
  const memory = view.memory.value !== undefined && view.memoryUsed.value !== undefined ? `, ${ofBytes(view.memoryUsed.value, view.memory.value)}` : '';
  return (
    <aside aria-label={`${view.host}, ${view.label}`}>
      <a class="close" href={addressOf({ ...address, gpu: '' })} aria-label="Close">×</a>
      <h2 tabIndex="-1" ref={title}>{view.label}</h2>
      <p class="subtitle">{view.model}{memory}; {STATES[view.state]}</p>
      {view.leases.map((lease) => <Lease key={lease.job ?? lease.holder} lease={lease} nowS={nowS} />)}
      {view.drain && <p>Drained by {view.drain.by || 'an administrator'}: {view.drain.reason}</p>}
      <Charts view={view} token={token} nowS={nowS} range={address.range} />
      <ReadingList view={view} />
      <Processes raw={view.status.processes} />
      <p class="note">{view.id}</p>
    </aside>
  );
}
