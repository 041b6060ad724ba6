import assert from 'node:assert/strict';
import { test } from 'node:test';
import { mapLayout, pairText, pairWord, pairsOf } from '../src/layout.js';
import { hostsOf } from '../src/model.js';
import { MARKS, marksOf, marksOfOthers, throttledSpans } from '../src/events.js';
import { countBehind, futureRows, futureSpan, projectionsOf, sureness } from '../src/future.js';
import { area, mean, ticks, timeScale } from '../src/timeline.js';
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

const withJobs = (more) => hostsOf({ version: 1, time_s: NOON, host: 'a', inventory: machine('a', [gpu(0), gpu(1)]), ...more });
const leases = [{ job: 3, device: 'GPU-0', since_s: NOON - 500, until_s: NOON + 3000, user: 'ana' }, { job: 4, device: 'GPU-1', since_s: NOON - 50, user: 'ben' }];

test('what happened stands on the lanes of those whom it befell', () => {
  const events = [
    { time_s: NOON - 90, kind: 'alert', devices: ['GPU-1'], text: 'an alert' },
    { time_s: NOON - 40, kind: 'checkpoint', devices: [], job: 3, text: 'checkpoint after step 7' },
    { time_s: NOON - 4000, kind: 'error', devices: ['GPU-0'], text: 'long ago' },
    { time_s: NOON - 10, kind: 'of a later version', devices: ['GPU-0'] },
  ];
  const past = [{ job: 2, device: 'GPU-0', since_s: NOON - 900, ended_s: NOON - 600, user: 'cho', failed: true, why: 'killed by signal 9' },
    { job: 1, device: 'GPU-0', since_s: NOON - 990, ended_s: NOON - 950, user: 'cho' }];
  const [host] = withJobs({ jobs: { leases, waiting: [] }, events, past });
  const said = (i) => marksOf(host.devices[i], host, undefined, NOON - 3600, NOON).map(({ timeS, kind, text }) => [NOON - timeS, kind, text]);
  assert.deepEqual(said(0), [[600, 'failed', "cho's job 2 failed: killed by signal 9"], [40, 'checkpoint', 'checkpoint after step 7'], [10, 'alert', 'of a later version']]);
  assert.deepEqual(said(1), [[90, 'alert', 'an alert']]);
  for (const { path, name } of Object.values(MARKS)) assert.ok(path.startsWith('M') && name.length > 3);
});

test('what befell no device that has a lane is told beside those that did', () => {
  const events = [
    { time_s: NOON - 90, kind: 'alert', devices: ['agent'], text: 'agent silent' },
    { time_s: NOON - 80, kind: 'error', devices: ['GPU-0'], text: 'an error' },
    { time_s: NOON - 70, kind: 'restart', devices: [], job: 3, text: 'by its job' },
    { time_s: NOON - 60, kind: 'rebalance', devices: ['cpu:0', 'GPU-1'], text: 'also on a lane' },
    { time_s: NOON - 5000, kind: 'alert', devices: ['/var/lib'], text: 'long ago' },
  ];
  const [host] = withJobs({ jobs: { leases, waiting: [] }, events });
  assert.deepEqual(marksOfOthers(host, NOON - 3600, NOON).map(({ timeS, kind, text, of }) => [NOON - timeS, kind, text, of]), [[90, 'alert', 'agent silent', 'agent']]);
  assert.equal(marksOf(host.devices[1], host, undefined, NOON - 3600, NOON).length, 1);
});

test('a time of throttling is one mark, and none where the alert says so', () => {
  const history = { start_s: NOON - 100, step_s: 10, measures: { throttled: [0, 0.5, 1, null, 1, 0, 0, 0, 0, 0] } };
  assert.deepEqual(throttledSpans(history).map(([from, to]) => [NOON - from, NOON - to]), [[90, 70], [60, 50]]);
  assert.deepEqual(throttledSpans({ ...history, measures: {} }), [], 'an older server');
  const [host] = withJobs({ events: [{ time_s: NOON - 85, kind: 'throttled', devices: ['GPU-0'], text: 'hot' }] });
  assert.equal(marksOf(host.devices[0], host, history, NOON - 3600, NOON).length, 1);
  assert.equal(marksOf(host.devices[1], host, history, NOON - 3600, NOON).length, 2);
});

test('what is to come is drawn as far as it is known, and told where it is not', () => {
  const waiting = [
    { id: 8, user: 'cho', starts_s: NOON + 3000, starts_on: ['GPU-0'], starts_after: 1, time_limit_s: 600 },
    { id: 9, user: 'dora', starts_s: NOON + 3600, starts_on: ['GPU-0'], starts_after: 2 },
    { id: 10, user: 'eve', starts_unknown: 'gpu:1 is held by ben (job 4), which has no time limit' },
    { id: 11, user: 'fay' },
  ];
  const [host] = withJobs({ jobs: { leases, waiting } });
  assert.deepEqual(projectionsOf(host.devices[0], host).map(({ kind, from, to, job, sure }) => [kind, from - NOON, to && to - NOON, job, sure]), [
    ['held', 0, 3000, 3, 1], ['starts', 3000, 3600, 8, 0.5], ['starts', 3600, undefined, 9, 1 / 3],
  ]);
  assert.deepEqual(projectionsOf(host.devices[1], host), [], 'ben has no limit');
  const over = withJobs({ jobs: { leases: [{ ...leases[0], until_s: NOON - 5 }], waiting: [{ ...waiting[0], starts_s: NOON - 5 }] } })[0];
  assert.deepEqual(projectionsOf(over.devices[0], over), [], 'what should have been is not to come');
  assert.ok(sureness(0) === 1 && sureness(3) < sureness(2));
  assert.equal(futureSpan([host]), 7200);
  assert.deepEqual(futureRows([host]).map(({ job, startS, endS, devices, unknown }) => [job, startS && startS - NOON, endS && endS - NOON, devices, unknown]), [
    [3, undefined, 3000, 'gpu:0', ''],
    [4, undefined, undefined, 'gpu:1', 'it has no time limit'],
    [8, 3000, 3600, 'gpu:0', ''],
    [9, 3600, undefined, 'gpu:0', ''],
    [10, undefined, undefined, '', 'gpu:1 is held by ben (job 4), which has no time limit'],
  ]);
  assert.equal(countBehind([host]), 1, 'job 11, of which nothing is worked out');
});

test('nothing is drawn of the future of a silent host, or of one of which nothing is known', () => {
  const [silent] = withJobs({ seen_s: NOON - 100, jobs: { leases, waiting: [] } });
  assert.deepEqual(projectionsOf(silent.devices[0], silent), []);
  assert.equal(futureSpan([silent]), 0);
  assert.deepEqual(futureRows([silent]).map(({ unknown }) => unknown), ['the host is silent', 'the host is silent']);
  assert.equal(futureSpan(withJobs({})), 0);
  const [unheard] = withJobs({ jobs: { leases, waiting: [] }, agent: { known_s: NOON - 60, text: 'it does not answer' } });
  assert.equal(futureSpan([unheard]), 0);
  assert.deepEqual(futureRows([unheard]).map(({ unknown }) => unknown), ['the agent does not answer', 'the agent does not answer']);
});

test('the past has one scale and what is to come another', () => {
  const x = timeScale({ fromS: 0, nowS: 100, futureS: 1000, left: 10, nowX: 110, right: 160 });
  assert.deepEqual([0, 50, 100, 600, 1100, 5000].map(x), [10, 60, 110, 135, 160, 160]);
  assert.equal(timeScale({ fromS: 0, nowS: 100, futureS: 0, left: 0, nowX: 100, right: 100 })(150), 150, 'one scale, where nothing is to come');
});
