// The page in a real browser, on recorded machines, through the real program.
//
//   browser.js REMUDA [FOLDER]   FOLDER: for pictures of what was seen
//
// Ends with 77 where a browser or its driver is missing.
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { NOON, allMissing, gpu, machine, markup, missing, oneGpu, recorded } from './fixtures.js';
import { launch, serve } from './served.js';

const [remuda, pictures] = process.argv.slice(2);

const browser = await launch();
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

const folder = mkdtempSync(join(tmpdir(), 'remuda-page-'));
const scratch = join(folder, 'recordings');
mkdirSync(scratch);
process.umask(0o022);
if (process.getuid() === 0) for (const one of [folder, scratch]) (await import('node:fs')).chmodSync(one, 0o755);

function file(name, recording) {
  const path = join(scratch, `${name}.json`);
  writeFileSync(path, JSON.stringify(recording));
  return path;
}

const busyUpTo = (n) => [{ busy: n / 60, memory_used_bytes: n * 2 ** 28 }, { busy: n < 30 ? 0.9 : 0 }];
const two = (host) => machine(host, [gpu(0), gpu(1, { busy: 0, power_watts: missing('denied', 'no') })], {
  links: [{ a: 'GPU-0', b: 'GPU-1', path: 'PHB', fabric: 'nvlink', fabric_links: 4 }],
  jobs: { leases: [{ job: 3, device: 'GPU-1', share: 1, since_s: NOON - 500, user: 'ana', name: 'fit' }], waiting: [] },
});
const CASES = {
  'one GPU': ['--replay', file('one', oneGpu)],
  'all readings missing': ['--replay', file('mute', allMissing)],
  'two hosts': ['--replay', file('a', recorded(two('a'), busyUpTo)), '--replay', file('b', recorded(two('b'), busyUpTo))],
  'a dead host': ['--replay', file('a2', recorded(two('a'), busyUpTo)), '--replay', file('dead', recorded(two('dead'), busyUpTo, { endS: NOON - 400, count: 20 }))],
  'names with markup': ['--replay', file('markup', markup)],
  'eight unlike GPUs': ['--demo'],
};

async function open(browser, address, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1400, height: 1000 }, timezoneId: 'UTC', ...options });
  const page = await context.newPage();
  const wrong = [];
  page.on('console', (message) => message.type() === 'error' && wrong.push(message.text()));
  page.on('pageerror', (error) => wrong.push(error.message));
  page.on('dialog', (dialog) => { wrong.push(`dialog: ${dialog.message()}`); dialog.dismiss(); });
  page.on('request', (request) => {
    if (!request.url().startsWith(new URL(address).origin) && !request.url().startsWith('data:')) wrong.push(`asked for ${request.url()}`);
  });
  await page.goto(address);
  await page.waitForSelector('table.devices');
  return { page, wrong, close: () => context.close() };
}

async function checkAccess(page) {
  const found = await page.evaluate(`(async () => { ${axe}; return (await axe.run()).violations.map((one) => one.id + ': ' + one.nodes.map((node) => node.html.slice(0, 120)).join(' | ')); })()`);
  assert.deepEqual(found, [], 'axe has something to say');
}

/// Each cell of the table says what the JSON has, or why it has nothing.
async function checkTables(page, snapshot) {
  const rows = await page.$$eval('table.devices tbody tr', (all) => all.map((row) => ({
    id: row.dataset.device,
    cells: [...row.querySelectorAll('td[data-reading]')].map((cell) => ({ ...cell.dataset, text: cell.textContent, title: cell.title })),
  })));
  const devices = [snapshot, ...(snapshot.others ?? [])]
    .flatMap((host) => host.inventory.devices.map((one) => ({ ...one, isSilent: snapshot.time_s - host.seen_s > 30 })))
    .filter((one) => one.kind !== 'cpu');
  assert.equal(rows.length, devices.length);
  rows.forEach((row, i) => {
    assert.equal(row.id, devices[i].id);
    for (const cell of row.cells) {
      const raw = devices[i].status?.[cell.reading];
      assert.deepEqual(cell.json === undefined ? undefined : JSON.parse(cell.json), raw, `${row.id} ${cell.reading}`);
      const isMissing = devices[i].isSilent || raw === undefined || raw.missing !== undefined;
      assert.equal(cell.text.startsWith('–'), isMissing, `${row.id} ${cell.reading}: ${cell.text}`);
      assert.ok(cell.title.length > 0, 'its exact value, or the reason');
    }
  });
  const leases = [snapshot, ...(snapshot.others ?? [])].flatMap((host) => [...host.jobs.leases, ...host.past]);
  const shown = await page.$$eval('table.leases tbody tr', (all) => all.map((row) => row.dataset.row));
  assert.deepEqual(shown.sort(), leases.map((one) => JSON.stringify(one)).sort());
  const runs = [snapshot, ...(snapshot.others ?? [])].flatMap((host) => host.runs);
  assert.deepEqual(await page.$$eval('.runs li', (all) => all.map((row) => row.dataset.row)), runs.map((one) => JSON.stringify(one)));
  const waiting = [snapshot, ...(snapshot.others ?? [])].flatMap((host) => host.jobs.waiting);
  assert.deepEqual(await page.$$eval('.queue li', (all) => all.map((row) => row.dataset.row)), waiting.map((one) => JSON.stringify(one)));
  const hosts = [snapshot, ...(snapshot.others ?? [])];
  const recent = hosts.flatMap((host) => host.events).filter((event) => event.time_s >= snapshot.time_s - 3600).map((one) => JSON.stringify(one));
  assert.deepEqual(new Set(await page.$$eval('table.events tr[data-event]', (all) => all.map((row) => row.dataset.event))), new Set(recent));
  const future = await page.$$eval('table.future tbody tr', (all) => all.map((row) => ({ raw: row.dataset.row, text: row.textContent })));
  for (const job of hosts.flatMap((host) => host.jobs.waiting)) {
    const row = future.find(({ raw }) => raw === JSON.stringify(job));
    assert.ok(row, `job ${job.id} is in the table of what is to come`);
    assert.ok(job.starts_s || row.text.includes(job.starts_unknown ?? 'only that of the first'), row.text);
  }
  const users = [snapshot, ...(snapshot.others ?? [])].flatMap((host) => host.jobs.fairness?.users ?? []);
  assert.deepEqual(await page.$$eval('.fairness tbody tr', (all) => all.map((row) => row.dataset.row)), users.map((one) => JSON.stringify(one)));
}

/// By keyboard alone: to the first device, into its panel, and out again.
async function checkKeyboard(page) {
  await page.focus('a.chip');
  await page.keyboard.press('Enter');
  await page.waitForSelector('aside');
  assert.match(page.url(), /#gpu=/);
  assert.ok(!page.url().includes('token'), 'the token is not left in the address');
  await checkAccess(page);
  await page.focus('aside .close');
  await page.keyboard.press('Enter');
  await page.waitForSelector('aside', { state: 'detached' });
}

async function look(browser, name, args) {
  const server = await serve(remuda, ['--speed', '0', ...args]);
  try {
    const token = new URL(server.address).hash.replace('#token=', '');
    const snapshot = await (await fetch(new URL('/api/snapshot', server.address), { headers: { authorization: `Bearer ${token}` } })).json();
    for (const colorScheme of ['light', 'dark']) {
      const { page, wrong, close } = await open(browser, server.address, { colorScheme, reducedMotion: colorScheme === 'dark' ? 'reduce' : 'no-preference' });
      await page.waitForFunction(() => document.querySelector('.lanes .busy') || document.querySelector('.note'));
      await checkAccess(page);
      if (colorScheme === 'light') {
        await checkTables(page, snapshot);
        if (args[0] === '--demo') await checkLanes(page);
        const paint = await page.evaluate(() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime);
        console.log(`${name}: ${await page.textContent('h1')} First paint after ${Math.round(paint)} ms`);
      }
      if (pictures) await page.screenshot({ path: join(pictures, `${name.replaceAll(' ', '-')}-${colorScheme}.png`), fullPage: true });
      if (pictures && args[0] === '--demo' && colorScheme === 'light')
        await page.screenshot({ path: join(pictures, 'readme.png'), fullPage: true, clip: { x: 0, y: 0, width: 1400, height: 1440 } });
      if (colorScheme === 'light') await checkKeyboard(page);
      assert.deepEqual(wrong, [], 'errors, or requests to elsewhere');
      assert.ok(!(await page.title()).includes('owned') || name === 'names with markup');
      await close();
    }
  } finally {
    await server.end();
  }
}

/// The address says what is shown: a set with its score, the matrix, a range; by keyboard it changes. All in 420 pixels.
async function lookByAddress(browser) {
  const server = await serve(remuda, ['--speed', '0', '--demo']);
  try {
    const asked = '&range=6h&set=corral/gpu:0,corral/gpu:1&view=matrix';
    const { page, wrong, close } = await open(browser, server.address + asked, { viewport: { width: 420, height: 900 } });
    const token = new URL(server.address).hash.replace('#token=', '');
    const score = await (await fetch(new URL('/api/set?host=corral&devices=gpu:0,gpu:1', server.address), { headers: { authorization: `Bearer ${token}` } })).json();
    await page.waitForSelector('table.set');
    assert.deepEqual(JSON.parse(await page.getAttribute('table.set', 'data-score')), score);
    assert.match(await page.textContent('table.set'), /52\.3 GB\/s.*gpu:0 – gpu:1, NV4/);
    assert.equal(await page.$('svg.map'), null, 'the matrix stands in its place');
    assert.equal(await page.textContent('nav[aria-label="Range"] [aria-current]'), '6h');
    assert.ok(page.url().endsWith(`#${asked.slice(1)}`), page.url());
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 420, 'nothing is wider than the window');
    await checkAccess(page);
    if (pictures) await page.screenshot({ path: join(pictures, 'narrow.png'), fullPage: true });
    await page.focus('.set-choice a:nth-of-type(3)');
    await page.keyboard.press('Enter');
    await page.waitForFunction(() => document.querySelector('table.set')?.textContent.includes('NODE'));
    assert.match(page.url(), /set=corral\/gpu:0,corral\/gpu:1,corral\/gpu:2/);
    await page.click('nav[aria-label="View"] a >> text=map');
    assert.equal((await page.$$('.chip.in-set')).length, 3);
    await page.click('.chip.in-set', { modifiers: ['Shift'] });
    await page.waitForFunction(() => document.querySelectorAll('.chip.in-set').length === 2);
    assert.deepEqual(wrong, []);
    await close();
    const embedded = await browser.newPage();
    await embedded.goto(server.address.replace('/#', '/?embed=map#'));
    await embedded.waitForSelector('svg.map');
    assert.equal(await embedded.$('svg.lanes[width]'), null, 'only what was asked for');
    await embedded.close();
  } finally {
    await server.end();
  }
}

/// What has happened and what is to come is drawn, in the demo.
async function checkLanes(page) {
  const drawn = await page.evaluate(() => Object.fromEntries(['checkpoint', 'rebalance', 'failed', 'alert', 'throttled'].map((kind) => [kind, document.querySelectorAll(`svg.lanes .mark.${kind}`).length])));
  for (const [kind, count] of Object.entries(drawn)) assert.ok(count > 0, `${kind} is drawn`);
  const future = await page.$$eval('svg.lanes[role] .bar.future title', (all) => all.map((one) => one.textContent));
  assert.ok(future.some((text) => text.startsWith('gpu:0: held by ana, ft-7b (job 41), until ')), future.join('\n'));
  assert.ok(future.some((text) => text.includes("fay's pretrain (job 70) starts at ")), future.join('\n'));
  assert.ok(!future.some((text) => text.startsWith('gpu:5:')), 'of dora nobody knows until when');
  const [now, first] = await page.evaluate(() => [document.querySelector('.now-line').getBoundingClientRect().x, document.querySelector('.bar.future.held > rect').getBoundingClientRect().x]);
  assert.ok(Math.abs(now - first) < 2, 'what is to come begins at "now"');
}

/// Without the token the page says so, and shows nothing.
async function lookWithoutToken(browser) {
  const server = await serve(remuda, ['--speed', '0', ...CASES['one GPU']]);
  const page = await browser.newPage();
  await page.goto(new URL('/', server.address).href);
  await page.waitForFunction(() => document.querySelector('.trouble').textContent.includes('token'));
  assert.equal(await page.$('table'), null);
  await server.end();
  await page.close();
}

/// When the server goes, the page says since when what it shows is old.
async function lookAtServerThatEnds(browser) {
  const server = await serve(remuda, ['--speed', '0', ...CASES['one GPU']]);
  const { page, close } = await open(browser, server.address);
  await server.end();
  await page.waitForFunction(() => document.querySelector('.trouble').textContent.includes('what you see is of'));
  await close();
}

if (pictures) mkdirSync(pictures, { recursive: true });
let failed = 0;
const attempt = async (name, action) => {
  await action().catch((error) => {
    failed += 1;
    console.log(`${name}: FAILED: ${error.stack}`);
  });
};
for (const [name, args] of Object.entries(CASES)) await attempt(name, () => look(browser, name, args));
await attempt('an address', () => lookByAddress(browser));
await attempt('without a token', () => lookWithoutToken(browser));
await attempt('a server that ends', () => lookAtServerThatEnds(browser));
await browser.close();
rmSync(folder, { recursive: true });
process.exit(failed > 0 ? 1 : 0);
