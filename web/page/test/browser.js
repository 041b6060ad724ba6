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
        const paint = await page.evaluate(() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime);
        console.log(`${name}: ${await page.textContent('h1')} First paint after ${Math.round(paint)} ms`);
      }
      if (pictures) await page.screenshot({ path: join(pictures, `${name.replaceAll(' ', '-')}-${colorScheme}.png`), fullPage: true });
      if (pictures && args[0] === '--demo' && colorScheme === 'light')
        await page.screenshot({ path: join(pictures, 'readme.png'), clip: { x: 0, y: 0, width: 1400, height: 1110 } });
      if (colorScheme === 'light') await checkKeyboard(page);
      assert.deepEqual(wrong, [], 'errors, or requests to elsewhere');
      assert.ok(!(await page.title()).includes('owned') || name === 'names with markup');
      await close();
    }
  } finally {
    await server.end();
  }
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
await attempt('without a token', () => lookWithoutToken(browser));
await attempt('a server that ends', () => lookAtServerThatEnds(browser));
await browser.close();
rmSync(folder, { recursive: true });
process.exit(failed > 0 ? 1 : 0);
