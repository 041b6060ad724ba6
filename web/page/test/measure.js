// How quick the page is in a real browser: its first paint, and 50 viewers at once. For docs/measurements.md, on a quiet machine.
//
//   measure.js REMUDA MACHINE   MACHINE: a recorded one, which is watched as if it were there: something new each second
import assert from 'node:assert/strict';
import { chmodSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { launch, serve } from './served.js';

const LOADS = 21;
const VIEWERS = 50;
const WATCH_S = 20;
const [remuda, machine] = process.argv.slice(2);

/// CPU time of a process so far, in seconds.
function cpuTime(pid) {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').pop().split(' ');
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

/// Of a viewer of its own, with nothing in any cache: from the request on, until something is painted, and until devices are.
async function load(browser, address) {
  const context = await browser.newContext({ viewport: { width: 1400, height: 1000 } });
  const page = await context.newPage();
  await page.goto(address);
  const devicesMs = await page.waitForFunction(() => document.querySelector('table.devices') && performance.now()).then((handle) => handle.jsonValue());
  const paintMs = await page.evaluate(() => performance.getEntriesByName('first-contentful-paint')[0].startTime);
  await context.close();
  return { paintMs, devicesMs };
}

const spread = (numbers) => {
  const sorted = [...numbers].sort((a, b) => a - b);
  const at = (part) => Math.round(sorted[Math.floor(part * (sorted.length - 1))]);
  return `median ${at(0.5)} ms, slowest ${at(1)} ms`;
};

const browser = await launch();
const folder = mkdtempSync(join(tmpdir(), 'remuda-page-'));
chmodSync(folder, 0o777);
const server = await serve(remuda, ['--machine', machine], { XDG_STATE_HOME: folder });
await load(browser, server.address); // the browser itself is warm then
const loads = [];
for (let i = 0; i < LOADS; i += 1) loads.push(await load(browser, server.address));
console.log(`first paint, ${LOADS} loads: ${spread(loads.map((one) => one.paintMs))}`);
console.log(`the table of devices is there, ${LOADS} loads: ${spread(loads.map((one) => one.devicesMs))}`);

const beganMs = performance.now();
const viewers = await Promise.all(Array.from({ length: VIEWERS }, async () => {
  const page = await (await browser.newContext()).newPage(); // a browser shares few connections among the pages of a context
  await page.goto(server.address, { timeout: 120000 });
  await page.waitForSelector('table.devices', { timeout: 120000 });
  await page.evaluate(() => {
    window.seen = 0;
    new MutationObserver(() => { window.seen += 1; }).observe(document.querySelector('time'), { characterData: true, childList: true, subtree: true });
  });
  return page;
}));
console.log(`${VIEWERS} viewers at once have the page after ${((performance.now() - beganMs) / 1000).toFixed(1)} s`);
const [cpuS, watchedMs] = [cpuTime(server.pid), performance.now()];
for (const page of viewers) await page.evaluate(() => { window.seen = 0; });
await new Promise((done) => setTimeout(done, WATCH_S * 1000));
const seen = await Promise.all(viewers.map((page) => page.evaluate(() => window.seen)));
const troubles = await Promise.all(viewers.map((page) => page.textContent('.trouble')));
const part = (cpuTime(server.pid) - cpuS) / ((performance.now() - watchedMs) / 1000);
console.log(`in ${WATCH_S} s they were shown ${Math.min(...seen)} to ${Math.max(...seen)} new snapshots each; the server took ${(100 * part).toFixed(1)} % of a core`);
assert.deepEqual([...new Set(troubles)], [''], 'nobody lost the connection');
await browser.close();
await server.end();
rmSync(folder, { recursive: true });
