// The map: who holds which device, and how they are wired.
import { addressOf } from './address.js';
import { mapLayout, pairsOf, pairText, pairWord } from './layout.js';
import { reading } from './model.js';
import { SetChoice } from './set.jsx';
import { toggled } from './set.js';
import { deviceSentence } from './sentences.js';
import { duration, ofBytes, percent, rangesOf } from './text.js';

const STATE_NOTES = { idle: 'idle', foreign: 'no lease', drained: 'drained', unclear: '', lost: 'lost', unknown: 'not seen', free: 'free', held: '' };

/// As much of a text as a chip of that width has room for.
function fitting(text, width) {
  const most = Math.floor((width - 16) / 6.8);
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}

/// With a key for more, a click is for the set.
function chooseForSet(event, address, key) {
  if (!event.ctrlKey && !event.metaKey && !event.shiftKey) return;
  event.preventDefault();
  location.hash = addressOf({ ...address, set: toggled(address.set, key) });
}

function Chip({ chip, colour, address, isChosen, idleS, bottom }) {
  const { view, x, y, w, h, used } = chip;
  const holder = view.holders[0];
  const throttled = (view.throttle.value ?? []).some((reason) => /thermal|power|hardware/.test(reason));
  const badges = [
    throttled && 'throttled',
    view.state === 'foreign' && 'no lease',
    view.drain && 'drained',
    view.alerts.length > 0 && '!',
  ].filter(Boolean);
  const what = view.state === 'idle' && idleS >= 60 ? `idle ${duration(idleS)}` : STATE_NOTES[view.state];
  const classes = ['chip', view.state, colour === undefined ? '' : `u${colour}`, isChosen ? 'chosen' : '', address.set.includes(view.key) ? 'in-set' : ''].join(' ');
  return (
    <a href={addressOf({ ...address, gpu: isChosen ? '' : view.key })} class={classes} onClick={(event) => chooseForSet(event, address, view.key)}>
      <title>{`${deviceSentence(view)}${used === undefined ? '' : `; memory ${ofBytes(view.memoryUsed.value, view.memory.value)}`}`}</title>
      <rect class="body" x={x} y={y} width={w} height={h} rx="3" />
      {used > 0 && <rect class="used" x={x + 1} y={bottom - 1 - (h - 2) * used} width={w - 2} height={(h - 2) * used} />}
      {view.state === 'idle' && <rect class="hatch" x={x + 1} y={y + 1} width={w - 2} height={h - 2} rx="3" />}
      <rect class="outline" x={x} y={y} width={w} height={h} rx="3" />
      <text class="name" x={x + 8} y={y + 17}>{view.label}</text>
      <text class="load" x={x + w - 8} y={y + 17}>{view.busy.value === undefined ? 'load ?' : percent(view.busy.value)}</text>
      <text class="model" x={x + 8} y={y + 32}>{fitting(chip.model, w)}</text>
      {badges.length > 0 && <text class="badge" x={x + 8} y={y + 47}>{badges.join(' · ')}</text>}
      <text class="holder" x={x + 8} y={bottom - 20}>{fitting(holder ? `${holder}${view.holders.length > 1 ? ` +${view.holders.length - 1}` : ''}` : '', w)}</text>
      <text class="what" x={x + 8} y={bottom - 7}>{what}</text>
    </a>
  );
}

function Link({ link }) {
  const isMeasured = link.gbps !== undefined;
  const kind = link.fabric ? (isMeasured ? 'measured' : 'assumed') : 'pcie';
  return (
    <g class={`link ${kind}`}>
      <title>{`${link.from.view.label} – ${link.to.view.label}: ${link.text}`}</title>
      <path d={link.path} class="line" style={{ strokeWidth: `${link.fabric ? link.width : 1.25}px` }} />
      {kind === 'assumed' && <path d={link.path} class="hollow" style={{ strokeWidth: `${Math.max(1, link.width - 2.5)}px` }} />}
    </g>
  );
}

function Bracket({ bracket, y, kind }) {
  return (
    <g class={`bracket ${kind}`}>
      <path d={`M${bracket.x0} ${y}v5H${bracket.x1}v-5`} />
      <text x={(bracket.x0 + bracket.x1) / 2} y={y + 17}>{bracket.label}</text>
    </g>
  );
}

function HostMap({ host, width, colours, address, idle }) {
  const layout = mapLayout(host, width);
  const label = `${host.name}: ${host.devices.map(deviceSentence).join('. ')}`;
  return (
    <div class="scroll" tabIndex="0" role="region" aria-label={`Map of ${host.name}`}>
      <svg class={`map${host.isSilent ? ' silent' : ''}`} width={layout.width} height={layout.height} role="group" aria-label={label}>
        <defs>
          <pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
            <path class="hatch-line" d="M0 0V6" />
          </pattern>
        </defs>
        {layout.links.map((link) => <Link key={`${link.a} ${link.b}`} link={link} />)}
        {layout.chips.map((chip) => (
          <Chip key={chip.view.key} chip={chip} bottom={layout.bottom} address={address} idleS={idle.get(chip.view.key)}
            colour={colours.get(chip.view.holders[0])} isChosen={address.gpu === chip.view.key} />
        ))}
        {layout.roots.map((bracket) => <Bracket key={`r${bracket.key}`} bracket={bracket} y={layout.bottom + 5} kind="root" />)}
        {layout.nodes.map((bracket) => <Bracket key={`n${bracket.key}`} bracket={bracket} y={layout.bottom + 31} kind="node" />)}
      </svg>
    </div>
  );
}

const WORDS = {
  X: 'itself', NV: 'so many NVLinks', XGMI: 'xGMI', PIX: 'one PCIe bridge at most', PXB: 'several PCIe bridges', PHB: 'over the PCIe host bridge', NODE: 'over host bridges of one NUMA node', SYS: 'between NUMA nodes',
};

/// What the words of a matrix mean, of those that stand in it.
function Legend({ words }) {
  const known = Object.entries(WORDS).filter(([word]) => words.some((one) => one === word || (word === 'NV' && /^NV\d*$/.test(one))));
  return <p class="note">{known.map(([word, meaning]) => `${word === 'NV' ? 'NV#' : word}: ${meaning}`).join('; ')}</p>;
}

/// The pairs in the words of the familiar matrix: the map's twin.
function Matrix({ host }) {
  const pairs = pairsOf(host.inventory);
  const pair = (a, b) => pairs.get(a.id < b.id ? `${a.id} ${b.id}` : `${b.id} ${a.id}`);
  return (
    <div class="scroll" tabIndex="0" role="region" aria-label={`Links of ${host.name}`}>
      <table class="matrix">
        <caption>How the devices of {host.name} are joined; GB/s where measured</caption>
        <thead>
          <tr><td />{host.devices.map((view) => <th key={view.key} scope="col">{view.label}</th>)}<th scope="col">CPU affinity</th><th scope="col">NUMA</th></tr>
        </thead>
        <tbody>
          {host.devices.map((row) => (
            <tr key={row.key}>
              <th scope="row">{row.label}</th>
              {host.devices.map((column) => {
                const one = pair(row, column);
                return row === column ? <td key={column.key} class="self">X</td> : (
                  <td key={column.key} title={one ? pairText(one) : 'not known'}>
                    {pairWord(one)}{one?.gbps !== undefined && <small> {one.gbps}</small>}
                  </td>
                );
              })}
              <Known raw={row.device.cores} text={rangesOf} />
              <Known raw={row.device.numa_node} text={String} />
            </tr>
          ))}
        </tbody>
      </table>
      <Legend words={['X', ...host.devices.flatMap((row) => host.devices.map((column) => (row === column ? 'X' : pairWord(pair(row, column)))))]} />
    </div>
  );
}

/// What is known of a device, or a dash with the reason.
function Known({ raw, text }) {
  const { value, reason } = reading(raw);
  return value === undefined ? <td class="missing" title={reason}>–</td> : <td>{text(value)}</td>;
}

const LEGEND = [
  ['measured', 'link beside PCIe, as wide as it was measured fast'],
  ['assumed', 'hollow: not measured'],
  ['pcie', 'measured over PCIe'],
];

export function Map_({ hosts, width, colours, address, idle, token }) {
  const isMatrix = address.view === 'matrix';
  return (
    <section class="map-panel" aria-labelledby="map-title">
      <div class="heading">
        <h2 id="map-title">Devices</h2>
        <nav aria-label="View">
          <a href={addressOf({ ...address, view: '' })} aria-current={isMatrix ? undefined : 'true'}>map</a>
          <a href={addressOf({ ...address, view: 'matrix' })} aria-current={isMatrix ? 'true' : undefined}>matrix</a>
        </nav>
      </div>
      <div class="hosts">
      {hosts.map((host) => (
        <div key={host.name} class="host">
          <h3>
            <span class={`dot${host.isSilent ? ' silent' : ''}`} aria-hidden="true" />
            {host.name} <small>{host.isSilent ? `silent for ${duration(host.silentS)}` : host.silentS >= 1 ? `seen ${duration(host.silentS)} before` : 'seen now'}</small>
          </h3>
          {isMatrix ? <Matrix host={host} /> : (
            <>
              <HostMap host={host} width={width} colours={colours} address={address} idle={idle} />
              <details>
                <summary>Links as a table</summary>
                <Matrix host={host} />
              </details>
            </>
          )}
          <SetChoice host={host} address={address} token={token} />
        </div>
      ))}
      </div>
      {!isMatrix && <p class="legend">
        {LEGEND.map(([kind, text]) => (
          <span key={kind}>
            <svg width="26" height="10" aria-hidden="true" class={`link ${kind}`}>
              <path class="line" d="M1 5H25" style={{ strokeWidth: kind === 'pcie' ? '1.25px' : '6px' }} />
              {kind === 'assumed' && <path class="hollow" d="M2 5H24" style={{ strokeWidth: '3px' }} />}
            </svg>
            {text}
          </span>
        ))}
        <span>width: measured speed; height: memory, filled as far as it is in use</span>
      </p>}
    </section>
  );
}
