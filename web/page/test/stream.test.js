import assert from 'node:assert/strict';
import { test } from 'node:test';
import { addressOf, parseAddress } from '../src/address.js';
import { EventParser } from '../src/stream.js';

test('events come whole, however they were cut', () => {
  const text = 'event: snapshot\nid: 1\ndata: {"a":1}\n\n:\n\nevent: snapshot\nid: 2\ndata: {"b":"x: y"}\n\n';
  for (const size of [1, 3, 7, text.length]) {
    const parser = new EventParser();
    const events = [];
    for (let at = 0; at < text.length; at += size) events.push(...parser.push(text.slice(at, at + size)));
    assert.deepEqual(events, [{ event: 'snapshot', id: '1', data: '{"a":1}' }, { event: 'snapshot', id: '2', data: '{"b":"x: y"}' }]);
  }
});

test('what has not ended is no event yet', () => {
  const parser = new EventParser();
  assert.deepEqual(parser.push('id: 1\ndata: {}'), []);
  assert.deepEqual(parser.push('\n\n'), [{ id: '1', data: '{}' }]);
});

test('the address keeps what is shown, and never the token', () => {
  const address = parseAddress('#token=secret&gpu=corral/gpu:3&range=6h');
  assert.deepEqual(address, { token: 'secret', gpu: 'corral/gpu:3', range: '6h', set: [], view: '' });
  assert.equal(addressOf(address), '#gpu=corral/gpu:3&range=6h');
  assert.equal(addressOf({ gpu: 'a b&c/gpu:0' }), '#gpu=a+b%26c/gpu:0');
  assert.deepEqual(parseAddress(addressOf({ gpu: 'a b&c/gpu:0' })).gpu, 'a b&c/gpu:0');
});

test('a range that is none is the usual one', () => {
  assert.equal(parseAddress('#range=constructor').range, '1h');
  assert.equal(parseAddress('').range, '1h');
  assert.equal(parseAddress('#view=<script>').view, '');
  assert.equal(parseAddress(`#set=${Array(99).fill('a/gpu:0').join(',')}`).set.length, 16);
  const all = '#gpu=a/gpu:0&range=6h&set=a/gpu:0,a/gpu:3&view=matrix';
  assert.equal(addressOf(parseAddress(all)), all);
  assert.deepEqual(parseAddress(all).set, ['a/gpu:0', 'a/gpu:3']);
});
