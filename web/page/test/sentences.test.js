// What the page says of a snapshot, and the terminal (snapshot/sentences_test.cc), stands in testdata/sentences.json.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { hostsOf, idleTimes } from '../src/model.js';
import { agentSentence, costText, missingReasons, queueSentence, runSentence, topSentence } from '../src/sentences.js';

const KEYS = ['busy', 'memory_used_bytes', 'power_watts', 'temperature_c', 'sm_clock_mhz', 'tensor_active'];
const cases = JSON.parse(readFileSync(new URL('../../../testdata/sentences.json', import.meta.url)));

const historiesOf = ({ busy = {}, step_s }) => new Map(Object.entries(busy).map(([key, series]) => [key, { step_s, measures: { busy: series } }]));

for (const one of cases)
  test(`page and terminal say the same: ${one.name}`, () => {
    const hosts = hostsOf(one.snapshot);
    const views = hosts.flatMap((host) => host.devices);
    const said = {
      sentence: topSentence(hosts, idleTimes(hosts, historiesOf(one))),
      devices: views.map(({ key, state, holders }) => ({ key, state, holders })),
      agents: hosts.map((host) => agentSentence(host, '07:31')).filter(Boolean),
      queue: hosts.flatMap((host) => host.waiting).map((job) => queueSentence(job, one.snapshot.time_s)),
      runs: hosts.flatMap((host) => host.runs.map((run) => runSentence(run, host.seenS))),
      costs: hosts.flatMap((host) => host.leases).map((lease) => costText(lease.use)).filter(Boolean),
      missing: missingReasons(hosts, KEYS),
    };
    assert.deepEqual(said, one.told);
  });
