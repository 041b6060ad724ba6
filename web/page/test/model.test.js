import assert from 'node:assert/strict';
import { test } from 'node:test';
import { coloursOf, hostsOf, idleFor, idleSpans, reading } from '../src/model.js';
import { deviceSentence, missingReasons, queueSentence, topSentence } from '../src/sentences.js';
import { NOON, allMissing, gpu, machine, markup, missing, oneGpu } from './fixtures.js';

function snapshot(one, jobs = {}, more = {}) {
  return { version: 1, time_s: NOON, seen_s: one.time_s, host: one.host, inventory: one, jobs: { leases: [], waiting: [], ...jobs }, ...more };
}
const lease = (index, user, job = 7) => ({ job, device: `GPU-${index}`, user, since_s: NOON - 3600, share: 1 });
const sentence = (...of) => topSentence(hostsOf(snapshot(...of)));

test('a reading is a value, or the reason why there is none', () => {
  assert.deepEqual(reading(0), { value: 0 });
  assert.deepEqual(reading({ value: 3, time_s: 5 }), { value: 3, timeS: 5 });
  assert.deepEqual(reading(undefined), { reason: 'not read' });
  assert.equal(reading(missing('denied', 'no permission')).reason, 'no permission');
  assert.equal(reading(missing('lost', '')).reason, 'the device does not answer any more');
  assert.deepEqual(reading([]), { value: [] });
});

test('one GPU that nobody holds', () => {
  assert.equal(sentence(oneGpu), '1 GPU on 1 host: 1 free; nobody waits; no alerts.');
});

test('states are counted in one order', () => {
  const one = machine('a', [gpu(0, { busy: 0.9 }), gpu(1, { busy: 0 }), gpu(2, { busy: 0.4 }), gpu(3, {}), gpu(4, {}), gpu(5, {}, { model: 'other' })]);
  const jobs = {
    leases: [lease(0, 'ana'), lease(1, 'ben'), { device: 'GPU-2', holder: 'eve', share: 1 }, lease(3, 'cho'), { device: 'GPU-4', barred: 'drained' }],
    waiting: [{ id: 9, user: 'x' }],
  };
  const hosts = hostsOf(snapshot(one, jobs, { alerts: [{ rule: 'r', device: 'GPU-1' }] }));
  assert.equal(
    topSentence(hosts),
    '6 GPUs of 2 kinds on 1 host: 1 working, 1 held but idle, 1 held, load unknown, 1 used without a lease, 1 drained, 1 free; 1 waiting; 1 alert.',
  );
  assert.match(topSentence(hosts, new Map([['a/gpu:1', 2520]])), /1 held but idle 42 min,/);
});

test('alerts that somebody looks after, or that are silenced, are not counted', () => {
  const alerts = [{ rule: 'r', device: 'GPU-0', acknowledged_by: 'ana' }, { rule: 's', device: 'GPU-0', silenced_until_s: NOON + 60 }];
  const hosts = hostsOf(snapshot(oneGpu, {}, { alerts }));
  assert.match(topSentence(hosts), /; no alerts\.$/);
  assert.equal(hosts[0].devices[0].alerts.length, 0);
  assert.equal(hosts[0].alerts.length, 2, 'they are listed all the same');
});

test('what is not known is not called idle', () => {
  assert.equal(sentence(allMissing), '2 GPUs of 2 kinds on 1 host: 1 free, 1 lost; nobody waits; no alerts.');
  assert.equal(
    deviceSentence(hostsOf(snapshot(allMissing))[0].devices[0]),
    'gpu:0, model unknown: free; busy unknown: only administrators may read it',
  );
});

test('a host that is silent is not believed', () => {
  const dead = machine('dead', [gpu(0, { busy: 1 })], { time_s: NOON - 720 });
  const hosts = hostsOf({ ...snapshot(machine('a', [gpu(0, { busy: 0 })])), others: [snapshot(dead, { leases: [lease(0, 'ana')] })] });
  assert.equal(topSentence(hosts), '2 GPUs on 2 hosts: 1 free, 1 not seen, as dead has been silent for 12 min; nobody waits; no alerts.');
});

test('a GPU in parts is its parts, and CPUs count where there is no GPU', () => {
  const part = { ...gpu(0), id: 'MIG', kind: 'partition', parent: 'GPU-0' };
  const cpu = { id: 'cpu:0', kind: 'cpu', index: 0, model: 'EPYC', status: {} };
  assert.deepEqual(hostsOf(snapshot(machine('a', [cpu, gpu(0), part])))[0].devices.map((view) => view.label), ['partition:0']);
  assert.equal(sentence(machine('a', [cpu])), '1 CPU device on 1 host: 1 free; nobody waits; no alerts.');
});

test('no devices at all', () => {
  assert.equal(sentence(machine('a', [])), '0 GPUs on 1 host; nobody waits; no alerts.');
});

test('why a job waits', () => {
  const job = { id: 70, user: 'fay', name: 'pre', submitted_s: NOON - 1800, request: { count: 4 }, why: 'behind job 44' };
  assert.equal(queueSentence(job, NOON), "fay's pre (job 70) wants 4 devices and has waited 30 min: behind job 44");
  assert.equal(queueSentence({ id: 1, user: 'x' }, NOON), "x's job 1 wants 1 device: its turn has not come");
});

test('a series is idle for as long as its end is', () => {
  assert.equal(idleFor([1, 0, 0, null], 10), 20);
  assert.equal(idleFor([0, null, 0], 10), 10);
  assert.equal(idleFor([0, 1], 10), 0);
  assert.equal(idleFor([null], 10), undefined);
});

test('idle spans are those of a minute and more', () => {
  const history = { start_s: 0, step_s: 30, measures: { busy: [0.5, 0, 0, 0.5, 0, 0.5, null, 0, 0, 0] } };
  assert.deepEqual(idleSpans(history, 0, 300), [[30, 90], [210, 300]]);
  assert.deepEqual(idleSpans(history, 40, 290), [[210, 290]]);
});

test('users have colours of their own while there are enough', () => {
  const hosts = hostsOf(snapshot(machine('a', []), { leases: ['a', 'b', 'c', 'd', 'e'].map((user, i) => lease(i, user)) }));
  const colours = coloursOf(hosts, 7);
  assert.equal(new Set(colours.values()).size, 5);
  assert.deepEqual(coloursOf(hosts, 7), colours);
});

test('names with markup are only text', () => {
  const hosts = hostsOf({ ...snapshot(markup), jobs: markup.jobs });
  assert.match(queueSentence(hosts[0].waiting[0], NOON), /^<img src=x/);
});

test('what a silent host said is not said to be so now', () => {
  const dead = machine('dead', [gpu(0, { busy: 1 })], { time_s: NOON - 720 });
  const [view] = hostsOf(snapshot(dead, { leases: [lease(0, 'ana')] }))[0].devices;
  assert.equal(view.busy.value, undefined);
  assert.equal(deviceSentence(view), 'gpu:0, NVIDIA A100-SXM4-40GB: not seen; last held by ana');
});

test('each reason for a missing reading is said once', () => {
  const no = missing('denied', 'no permission');
  const one = machine('a', [gpu(0, { busy: no, power_watts: no }), gpu(1, { busy: no, power_watts: no }), gpu(2, { busy: no, power_watts: 3 }), gpu(3)]);
  assert.deepEqual(missingReasons(hostsOf(snapshot(one)), ['busy', 'power_watts', 'temperature_c']), [
    { reason: 'no permission', of: 'busy, power of gpu:0, gpu:1; busy of gpu:2' },
  ]);
});
