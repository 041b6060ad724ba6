// What devices are worth as a set, as the scheduler scores it, in rows for people. Pure.
import { percent } from './text.js';

export const MOST = 16; // as many as the server takes

/// The set without that device, or with it. Those of other hosts go: a set is of one machine.
export function toggled(set, key) {
  if (set.includes(key)) return set.filter((one) => one !== key);
  const host = key.slice(0, key.lastIndexOf('/'));
  return [...set.filter((one) => one.slice(0, one.lastIndexOf('/')) === host), key].slice(-MOST);
}

const gbps = (value) => `${Number(value.toPrecision(3))} GB/s`;
const group = (words, set) => (set ? [[words, `${set.devices.join(', ')}: ${gbps(set.gbps)} in their ring`]] : []);

/// [name, text] of what the server says of a set; the first one is the sum of it.
export function rowsOfSet(score) {
  if (score.error) return [['Not scored', score.error]];
  if (score.refused) return [['Cannot be used together', [score.sentence, ...(score.rejected ?? []).map(({ device, reason }) => `${device} ${reason}`)].join('; ')]];
  const { ring, links, numa_nodes: nodes, pcie_roots: roots, left, notes, devices } = score.explanation;
  const rows = [];
  if (devices.length === 1) rows.push(['Ring', 'one device needs no link']);
  else if (!ring) rows.push(['Ring', 'not known: their links are not recorded']);
  else rows.push(['Ring', `${ring.reason.includes('GB/s') ? ring.reason : `${gbps(ring.gbps)} (${ring.reason})`}, the slowest link of the best ring: ${ring.slowest.join(' – ')}, ${ring.label}`]);
  if (links.length > 1)
    rows.push(['Links', links.map(({ a, b, label, gbps: speed, measured }) => `${a} – ${b} ${label}${speed === null ? '' : ` ${gbps(speed)}${measured ? '' : ' by its kind'}`}`).join('; ')]);
  if (nodes.length > 0) rows.push(['NUMA nodes', nodes.join(', ')]);
  if (roots.length > 0) rows.push(['PCIe roots', roots.join(', ')]);
  if (score.shares) rows.push(['Split', `${score.shares.map((share, i) => `${devices[i]} ${percent(share)}`).join(', ')}, as they are unlike${score.explanation.shares_basis ? `: ${score.explanation.shares_basis}` : ''}`]);
  rows.push(['Leaves', left.devices.length > 0 ? left.devices.join(', ') : 'nothing'], ...group('Best pair left', left.best_pair), ...group('Best four left', left.best_four));
  for (const note of notes ?? []) rows.push(['Note', note]);
  return rows;
}
