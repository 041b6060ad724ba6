import assert from 'node:assert/strict';
import { test } from 'node:test';
import { mapLayout, pairText, pairWord, pairsOf } from '../src/layout.js';
import { hostsOf } from '../src/model.js';
import { area, mean, ticks } from '../src/timeline.js';
import { bytes, duration, shortModel } from '../src/text.js';
import { NOON, allMissing, gpu, machine } from './fixtures.js';

const hostOf = (one) => hostsOf({ version: 1, time_s: NOON, host: one.host, inventory: one })[0];
const pair = {
  links: [{ a: 'GPU-0', b: 'GPU-1', path: 'PHB', fabric: 'nvlink', fabric_links: 4 }, { a: 'GPU-0', b: 'GPU-2', path: 'SYS', fabric: 'none' }],
};

test('chips do not overlap and stay inside', () => {
  for (const count of [1, 2, 8, 16, 64]) {
    const { chips, width, height } = mapLayout(hostOf(machine('a', Array.from({ length: count }, (_, i) => gpu(i, {}, { numa_node: i % 2, pcie_root: `pci:${i % 4}` })))), 1000);
    assert.equal(chips.length, count);
    chips.forEach((chip, i) => {
      assert.ok(chip.x >= 0 && chip.x + chip.w <= width && chip.y >= 0 && chip.y + chip.h <= height);
      if (i > 0) assert.ok(chip.x >= chips[i - 1].x + chips[i - 1].w);
    });
  }
});

test('neighbours in the PCIe tree stand beside each other, under one bracket', () => {
  const one = machine('a', [gpu(0, {}, { numa_node: 1 }), gpu(1), gpu(2, {}, { numa_node: 1 })]);
  const layout = mapLayout(hostOf(one));
  assert.deepEqual(layout.chips.map((chip) => chip.view.label), ['gpu:1', 'gpu:0', 'gpu:2']);
  assert.deepEqual(layout.nodes.map((node) => node.label), ['NUMA node 0', 'NUMA node 1']);
});

test('the fastest is the widest, the largest the highest, and nothing is made up', () => {
  const one = machine('a', [gpu(0), gpu(1, {}, { memory_bytes: 80 * 2 ** 30 })], {
    measured_devices: [{ id: 'GPU-0', gemm: [{ precision: 'bfloat16', tflops: 100 }] }],
  });
  const [a, b] = mapLayout(hostOf(one)).chips;
  assert.ok(a.w > b.w && a.h < b.h);
  assert.equal(b.speed, undefined);
  assert.equal(mapLayout(hostOf(allMissing)).chips[0].used, undefined);
});

test('links beside PCIe are drawn, and say whether they were measured', () => {
  const devices = [gpu(0), gpu(1), gpu(2)];
  const assumed = mapLayout(hostOf(machine('a', devices, pair))).links;
  assert.deepEqual(assumed.map((link) => link.text), ['NVLink × 4, not measured']);
  const measured = mapLayout(hostOf(machine('a', devices, { ...pair, measured_links: [{ a: 'GPU-1', b: 'GPU-0', gbps: 52.3 }] }))).links;
  assert.deepEqual(measured.map((link) => link.text), ['NVLink × 4, 52.3 GB/s, measured']);
});

test('pairs in the words of the familiar matrix', () => {
  const pairs = pairsOf(machine('a', [], pair));
  assert.equal(pairWord(pairs.get('GPU-0 GPU-1')), 'NV4');
  assert.equal(pairWord(pairs.get('GPU-0 GPU-2')), 'SYS');
  assert.equal(pairWord(undefined), '-');
  assert.equal(pairText(pairs.get('GPU-0 GPU-2')), 'PCIe, SYS, not measured');
});

test('an area has gaps where nothing is known, and ends where the lease does', () => {
  const history = { start_s: 0, step_s: 10, measures: { busy: [0.5, null, 1, 1] } };
  assert.equal(area(history, 0, 35, (x) => x, 20, 10), 'M0.0 20V15.0H10.0V20ZM20.0 20V10.0H30.0V10.0H35.0V20Z');
  assert.equal(area(history, 100, 200, (x) => x, 20, 10), '');
});

test('what a device waited is drawn and told of the same steps', () => {
  const history = { start_s: 0, step_s: 10, measures: { busy: [1, 1, 1, 1], waiting: [null, 0.2, 0.4, null] } };
  assert.equal(area(history, 0, 40, (x) => x, 20, 10, 'waiting'), 'M10.0 20V18.0H20.0V16.0H30.0V20Z');
  assert.ok(Math.abs(mean(history, 0, 40, 'waiting') - 0.3) < 1e-9);
  assert.equal(mean(history, 30, 40, 'waiting'), undefined, 'it is not known, and not 0');
  assert.equal(mean(history, 0, 40, 'throttled'), undefined);
  assert.equal(area({ ...history, measures: { busy: [1] } }, 0, 40, (x) => x, 20, 10, 'waiting'), '', 'an older server');
});

test('the axis has few marks at round times', () => {
  for (const span of [900, 3600, 21600, 86400, 604800]) {
    const marks = ticks(NOON - span, NOON);
    assert.ok(marks.length >= 3 && marks.length <= 8, `${marks.length} in ${span} s`);
  }
  assert.deepEqual(ticks(NOON - 3600, NOON).map((at) => at % 600), [0, 0, 0, 0, 0, 0, 0]);
});

test('numbers as people read them', () => {
  assert.equal(duration(59), '59 s');
  assert.equal(duration(3600), '1 h');
  assert.equal(duration(9660), '2 h 41 min');
  assert.equal(duration(3 * 86400 + 5), '3 days');
  assert.equal(duration(200000), '2 days 7 h');
  assert.equal(bytes(1.5 * 2 ** 30), '1.5 GiB');
  assert.equal(bytes(512), '512 B');
});

test('models are short where there is little room', () => {
  for (const [long, short] of [
    ['NVIDIA GeForce RTX 3090', 'RTX 3090'], ['Tesla V100-PCIE-16GB', 'V100'], ['NVIDIA A100-SXM4-40GB', 'A100'],
    ['AMD Instinct MI100', 'MI100'], ['NVIDIA H100 80GB HBM3', 'H100'], ['', 'model unknown'],
  ])
    assert.equal(shortModel(long), short);
});
