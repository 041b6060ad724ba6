// The runs: how far each is, how its work is split over its devices, and how long these wait for each other.
import { runSentence } from './sentences.js';
import { percent } from './text.js';

const HEIGHT = 22;

/// A bar as long as the work of a step: a piece for each device, hatched for the part of its time in which it waits.
function Shares({ parts, label }) {
  let x = 0;
  return (
    <svg class="shares" viewBox={`0 0 1000 ${HEIGHT}`} preserveAspectRatio="none" aria-hidden="true">
      {parts.map((part) => {
        const [begin, width] = [x, 1000 * part.share];
        x += width;
        return (
          <g key={part.device} class="bar">
            <title>{`${label(part.device)}: ${percent(part.share)} of each step`}</title>
            <rect x={begin} y="1" width={width} height={HEIGHT - 2} />
            {part.waiting > 0 && <rect class="hatch" x={begin + width * (1 - part.waiting)} y="1" width={width * part.waiting} height={HEIGHT - 2} />}
          </g>
        );
      })}
    </svg>
  );
}

function Run({ host, entry, colour }) {
  const parts = entry.run?.parts ?? [];
  const label = (id) => host.devices.find((view) => view.id === id)?.label ?? id;
  const isSplit = parts.length > 1 && parts.every((part) => part.share >= 0);
  return (
    <li class={`u${colour ?? 'none'}`} data-row={JSON.stringify(entry)}>
      <p>{runSentence(entry, host.seenS)} <code>remuda show {entry.job}</code></p>
      {isSplit && <Shares parts={parts} label={label} />}
      {parts.length > 0 && (
        <table>
          <caption class="unseen">Devices of job {entry.job}</caption>
          <thead><tr><th scope="col">Device</th><th scope="col">Part of each step</th><th scope="col">Waits for others</th></tr></thead>
          <tbody>
            {parts.map((part) => (
              <tr key={part.device}>
                <th scope="row">{label(part.device)}</th>
                <td>{part.share === undefined ? '–' : percent(part.share)}</td>
                <td>{part.waiting === undefined ? '–' : `${percent(part.waiting)} of the time`}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </li>
  );
}

/// Nothing where no run says how it goes.
export function Runs({ hosts, colours }) {
  const all = hosts.flatMap((host) => host.runs.map((entry) => ({ host, entry })));
  if (all.length === 0) return null;
  return (
    <section aria-labelledby="runs-title">
      <h2 id="runs-title">Runs</h2>
      <ul class="runs">
        {all.map(({ host, entry }) => <Run key={`${host.name} ${entry.job}`} host={host} entry={entry} colour={colours.get(entry.user)} />)}
      </ul>
    </section>
  );
}
