// For tests of the page in a real browser: the browser, and the program that serves the page.
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';

const BROWSERS = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];
const NOBODY = 65534;

export function skip(reason) {
  console.log(`skipped: ${reason}`);
  process.exit(77);
}

/// Chromium without a window. Where it or its driver is missing, this process ends with 77.
export async function launch() {
  const executablePath = BROWSERS.find(existsSync);
  if (!executablePath) skip('there is no Chromium; apt-get install chromium');
  const { chromium } = await import('playwright-core').catch(() => skip('web/page/node_modules is missing; ./dev web installs it'));
  return chromium.launch({ executablePath, args: process.getuid() === 0 ? ['--no-sandbox'] : [] });
}

/// The program, as a user without rights, and its address.
export async function serve(remuda, args, environment = {}) {
  const rights = process.getuid() === 0 ? { uid: NOBODY, gid: NOBODY } : {};
  const server = spawn(remuda, ['web', '--listen', '127.0.0.1:0', ...args], { ...rights, env: { ...process.env, ...environment }, stdio: ['ignore', 'pipe', 'inherit'] });
  const address = await new Promise((done, fail) => {
    server.stdout.once('data', (text) => done(String(text).trim()));
    server.once('exit', () => fail(new Error(`${remuda} web ${args.join(' ')} has ended`)));
  });
  return { address, pid: server.pid, end: () => new Promise((done) => { server.removeAllListeners('exit'); server.once('exit', done); server.kill('SIGTERM'); }) };
}
