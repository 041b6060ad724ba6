// Where everything of the map stands: chips of devices in a row, arcs of links above them, brackets of the PCIe tree below.
// Pure; all in pixels.
import { reading } from './model.js';
import { shortModel } from './text.js';

const GAP = 14;
const ROOT_GAP = 26;
const NODE_GAP = 44;
const NARROW = 84;
const WIDE = 118;
const WIDEST = 170;
const LOW = 78;
const HIGH = 118;
const EDGE = 8;

/// The layout of one host.
/// It takes the width there is, as far as that looks well.
export function mapLayout(host, width = 0) {
  const speeds = speedsOf(host.inventory);
  const most = Math.max(...speeds.values(), 0);
  const memoryMost = Math.max(...host.devices.map((view) => view.memory.value ?? 0), 1);
  const chips = sorted(host.devices).map((view) => {
    const speed = speeds.get(view.id);
    const memory = view.memory.value;
    return {
      view,
      speed,
      model: shortModel(view.model),
      w: speed ? NARROW + (WIDE - NARROW) * (speed / most) : NARROW,
      h: memory ? LOW + (HIGH - LOW) * Math.sqrt(memory / memoryMost) : LOW,
      used: memory && view.memoryUsed.value !== undefined ? Math.min(1, view.memoryUsed.value / memory) : undefined,
      root: reading(view.device.pcie_root).value ?? '',
      node: reading(view.device.numa_node).value,
    };
  });
  const sum = (list) => list.reduce((all, one) => all + one, 0);
  const chipsWidth = sum(chips.map((chip) => chip.w));
  let gaps = chips.map((chip, i) => (i === 0 ? EDGE : gapBetween(chips[i - 1], chip)));
  if (chipsWidth + sum(gaps) + EDGE > width) gaps = gaps.map((gap) => Math.max(EDGE, gap / 2));
  const stretch = Math.min(WIDEST / WIDE, Math.max(1, (width - EDGE - sum(gaps)) / chipsWidth));
  let x = 0;
  chips.forEach((chip, i) => {
    chip.w *= stretch;
    chip.x = x + gaps[i];
    x = chip.x + chip.w;
  });
  const links = linksOf(host.inventory, chips);
  const arcs = Math.max(0, ...links.map((link) => link.rise));
  const bottom = EDGE + arcs + HIGH;
  for (const chip of chips) chip.y = bottom - chip.h;
  for (const link of links) link.path = arc(link);
  return {
    chips,
    links,
    roots: brackets(chips, (chip) => `${chip.node}/${chip.root}`, (chip) => chip.root),
    nodes: brackets(chips, (chip) => chip.node, (chip) => (chip.node === undefined ? '' : `NUMA node ${chip.node}`)),
    bottom,
    width: x + EDGE,
    height: bottom + 62,
  };
}

function gapBetween(before, chip) {
  if (before.node !== chip.node) return NODE_GAP;
  return before.root !== chip.root ? ROOT_GAP : GAP;
}

/// Neighbours in the PCIe tree stand beside each other.
function sorted(devices) {
  const place = (view) => [reading(view.device.numa_node).value ?? 1e9, reading(view.device.pcie_root).value ?? ''];
  return [...devices].sort((a, b) => {
    const [nodeA, rootA] = place(a);
    const [nodeB, rootB] = place(b);
    return nodeA - nodeB || rootA.localeCompare(rootB) || a.device.index - b.device.index;
  });
}

/// 10^12 operations a second of the fastest precision that was measured, by device.
function speedsOf(inventory) {
  const speeds = new Map();
  for (const one of inventory.measured_devices ?? [])
    speeds.set(one.id, Math.max(0, ...(one.gemm ?? []).map((gemm) => gemm.tflops)));
  return speeds;
}

const pairKey = (a, b) => (a < b ? `${a} ${b}` : `${b} ${a}`);

/// What joins two devices, with what is known of its speed: measured, or assumed of its kind.
export function pairsOf(inventory) {
  const pairs = new Map();
  for (const link of inventory.links ?? []) {
    const fabric = reading(link.fabric).value;
    const isFabric = fabric !== undefined && fabric !== 'none';
    pairs.set(pairKey(link.a, link.b), {
      a: link.a,
      b: link.b,
      fabric: isFabric ? fabric : undefined,
      count: reading(link.fabric_links).value,
      isSwitched: reading(link.fabric_switched).value === true,
      way: reading(link.path).value,
      assumedGbps: reading(link.max_gbps).value,
    });
  }
  for (const one of inventory.measured_links ?? []) {
    const key = pairKey(one.a, one.b);
    pairs.set(key, { ...(pairs.get(key) ?? { a: one.a, b: one.b }), gbps: one.gbps, measuredS: one.time_s });
  }
  return pairs;
}

const FABRIC_WORDS = { nvlink: 'NVLink', xgmi: 'xGMI' };

/// "NVLink x 4, 52.3 GB/s, measured"
export function pairText(pair) {
  const what = pair.fabric ? `${FABRIC_WORDS[pair.fabric] ?? pair.fabric}${pair.count ? ` × ${pair.count}` : ''}` : `PCIe${pair.way ? `, ${pair.way}` : ''}`;
  if (pair.gbps !== undefined) return `${what}, ${pair.gbps} GB/s, measured`;
  return pair.assumedGbps !== undefined ? `${what}, ${pair.assumedGbps} GB/s by its kind, not measured` : `${what}, not measured`;
}

/// The word of the familiar matrix for a pair: NV4, XGMI, PHB.
export function pairWord(pair) {
  if (!pair) return '-';
  if (pair.fabric === 'nvlink') return `NV${pair.count ?? ''}`;
  return pair.fabric ? pair.fabric.toUpperCase() : (pair.way ?? '-');
}

/// The links worth drawing: those beside PCIe, and what was measured; a switch that joins all is drawn once, below.
function linksOf(inventory, chips) {
  const at = new Map(chips.map((chip) => [chip.view.id, chip]));
  const links = [];
  for (const pair of pairsOf(inventory).values()) {
    const [a, b] = [at.get(pair.a), at.get(pair.b)];
    if (!a || !b || (!pair.fabric && pair.gbps === undefined)) continue;
    const distance = Math.abs(chips.indexOf(a) - chips.indexOf(b));
    const width = Math.min(9, Math.max(1.5, 1.5 + (pair.gbps ?? pair.assumedGbps ?? 25) / 9));
    links.push({ ...pair, from: a, to: b, width, rise: 14 + 13 * distance + (distance > 1 ? 6 : 0), text: pairText(pair) });
  }
  return links;
}

function arc({ from, to, rise }) {
  const [left, right] = from.x < to.x ? [from, to] : [to, from];
  // Several arcs leave a chip: those to the right from its right side, those to the left from its left.
  const [x0, x1] = [left.x + left.w * 0.68, right.x + right.w * 0.32];
  const top = Math.min(left.y, right.y) - rise;
  return `M${x0} ${left.y}C${x0} ${top} ${x1} ${top} ${x1} ${right.y}`;
}

function brackets(chips, keyOf, labelOf) {
  const all = [];
  for (const chip of chips) {
    const last = all.at(-1);
    if (last && last.key === keyOf(chip)) last.x1 = chip.x + chip.w;
    else all.push({ key: keyOf(chip), label: labelOf(chip), x0: chip.x, x1: chip.x + chip.w });
  }
  return all.filter((bracket) => bracket.label);
}
