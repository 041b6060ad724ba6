// The choice of a set of devices on the map, and what the scheduler would say of it.
import { useEffect, useState } from 'preact/hooks';
import { addressOf } from './address.js';
import { rowsOfSet, toggled } from './set.js';
import { fetchSet } from './stream.js';

function Score({ host, labels, token }) {
  const [score, setScore] = useState(null);
  const measured = host.inventory.measured_links?.length;
  useEffect(() => {
    let isCurrent = true;
    fetchSet(token, host.name, labels).then((got) => isCurrent && setScore(got));
    return () => { isCurrent = false; };
  }, [host.name, labels.join(','), measured]);
  if (!score) return null;
  return (
    <table class="set" aria-live="polite" data-score={JSON.stringify(score)}>
      <caption>What {labels.join(', ')} {labels.length === 1 ? 'is' : 'are'} worth as a set, if nobody held anything; <code>remuda place --device {labels.join(',')} --any-model --explain</code></caption>
      <tbody>
        {rowsOfSet(score).map(([name, text], i) => <tr key={i}><th scope="row">{name}</th><td class="words">{text}</td></tr>)}
      </tbody>
    </table>
  );
}

export function SetChoice({ host, address, token }) {
  if (host.devices.length < 2) return null;
  const chosen = host.devices.filter((view) => address.set.includes(view.key));
  return (
    <>
      <nav class="set-choice" aria-label={`Set of devices of ${host.name}`}>
        <span>Score a set:</span>
        {host.devices.map((view) => (
          <a key={view.key} href={addressOf({ ...address, set: toggled(address.set, view.key) })} aria-current={address.set.includes(view.key) ? 'true' : undefined}>{view.label}</a>
        ))}
        {chosen.length > 0 && <a href={addressOf({ ...address, set: [] })}>none</a>}
      </nav>
      {chosen.length > 0 && <Score host={host} labels={chosen.map((view) => view.label)} token={token} />}
    </>
  );
}
