import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MOST, rowsOfSet, toggled } from '../src/set.js';
import { rangesOf } from '../src/text.js';

test('a set is of one host, and not larger than the server takes', () => {
  assert.deepEqual(toggled(['a/gpu:0'], 'a/gpu:1'), ['a/gpu:0', 'a/gpu:1']);
  assert.deepEqual(toggled(['a/gpu:0', 'a/gpu:1'], 'a/gpu:0'), ['a/gpu:1']);
  assert.deepEqual(toggled(['a/gpu:0'], 'b/gpu:1'), ['b/gpu:1']);
  assert.equal(toggled(Array.from({ length: MOST }, (_, i) => `a/gpu:${i}`), 'a/gpu:99').length, MOST);
});

test('what a set is worth, in words', () => {
  const links = [{ a: 'gpu:0', b: 'gpu:1', label: 'NV4', gbps: 52.31, measured: true }, { a: 'gpu:0', b: 'gpu:2', label: 'SYS', gbps: 10, measured: false }, { a: 'gpu:1', b: 'gpu:2', label: 'SYS', gbps: null, measured: false }];
  const explanation = { devices: ['gpu:0', 'gpu:1', 'gpu:2'], ring: { gbps: 10, slowest: ['gpu:0', 'gpu:2'], label: 'SYS', reason: 'assumed' }, links, numa_nodes: [0, 1], pcie_roots: [], left: { devices: ['gpu:3'], best_pair: null, best_four: null }, notes: [] };
  assert.deepEqual(rowsOfSet({ devices: ['x', 'y', 'z'], shares: [0.5, 0.3, 0.2], explanation }), [
    ['Ring', '10 GB/s (assumed), the slowest link of the best ring: gpu:0 – gpu:2, SYS'],
    ['Links', 'gpu:0 – gpu:1 NV4 52.3 GB/s; gpu:0 – gpu:2 SYS 10 GB/s by its kind; gpu:1 – gpu:2 SYS'],
    ['NUMA nodes', '0, 1'],
    ['Split', 'gpu:0 50 %, gpu:1 30 %, gpu:2 20 %, as they are unlike'],
    ['Leaves', 'gpu:3'],
  ]);
  assert.deepEqual(rowsOfSet({ explanation: { ...explanation, ring: null, links: [] } })[0], ['Ring', 'not known: their links are not recorded']);
  assert.deepEqual(rowsOfSet({ refused: 'never', sentence: 'no such set', rejected: [{ device: 'gpu:1', reason: 'is lost' }] }), [['Cannot be used together', 'no such set; gpu:1 is lost']]);
  assert.deepEqual(rowsOfSet({ error: 'there is no device' }), [['Not scored', 'there is no device']]);
});

test('cores as ranges', () => {
  assert.equal(rangesOf([0, 1, 2, 7, 9, 10]), '0-2,7,9-10');
  assert.equal(rangesOf([]), '');
});
