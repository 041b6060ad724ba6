// Server-sent events by fetch(), which unlike EventSource can send the token as a header.

/// Takes pieces of a stream of events; returns the events that are complete, each {event, id, data}.
export class EventParser {
  #rest = '';
  push(piece) {
    const blocks = (this.#rest + piece).split('\n\n');
    this.#rest = blocks.pop();
    return blocks.map(parseBlock).filter((event) => event.data !== undefined);
  }
}

function parseBlock(block) {
  const event = {};
  for (const line of block.split('\n')) {
    const colon = line.indexOf(':');
    if (colon <= 0) continue; // a comment: the server is there
    const value = line.slice(colon + 1).replace(/^ /, '');
    const key = line.slice(0, colon);
    event[key] = key === 'data' && event.data !== undefined ? `${event.data}\n${value}` : value;
  }
  return event;
}

export class Refused extends Error {}

const SILENT_MS = 15000; // three heartbeats
const LONGEST_PAUSE_MS = 15000;

/// Calls `onSnapshot` with each snapshot and `onTrouble` with a sentence while there are none, until `signal` ends it. Comes
/// back by itself, except where the token is refused.
export async function follow(token, { onSnapshot, onTrouble, signal }) {
  let lastId = '0';
  for (let pauseMs = 500; !signal.aborted; pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS)) {
    try {
      await read(token, lastId, signal, (event) => {
        lastId = event.id ?? lastId;
        pauseMs = 500;
        const snapshot = JSON.parse(event.data);
        if (snapshot.error) onTrouble(snapshot.error);
        else onSnapshot(snapshot);
      });
    } catch (error) {
      if (signal.aborted) return;
      onTrouble(error instanceof Refused ? error.message : 'no connection to the server; trying again');
      if (error instanceof Refused) return;
    }
    await new Promise((done) => setTimeout(done, pauseMs));
  }
}

async function read(token, lastId, signal, onEvent) {
  const stop = new AbortController();
  const end = () => stop.abort();
  signal.addEventListener('abort', end);
  let watch = setTimeout(end, SILENT_MS);
  try {
    const headers = { authorization: `Bearer ${token}`, 'last-event-id': lastId };
    const response = await fetch('/api/events', { headers, signal: stop.signal, cache: 'no-store' });
    if (response.status === 401) throw new Refused('The token is missing or wrong. Open the address that `remuda web` has printed.');
    if (!response.ok) throw new Error(`status ${response.status}`);
    const parser = new EventParser();
    const pieces = response.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let next = await pieces.read(); !next.done; next = await pieces.read()) {
      clearTimeout(watch);
      watch = setTimeout(end, SILENT_MS);
      parser.push(next.value).forEach(onEvent);
    }
  } finally {
    clearTimeout(watch);
    signal.removeEventListener('abort', end);
    stop.abort();
  }
}

/// What devices are worth as a set; {error} where the server does not say.
export async function fetchSet(token, host, devices) {
  const query = new URLSearchParams({ host, devices: devices.join(',') });
  const response = await fetch(`/api/set?${query}`, { headers: { authorization: `Bearer ${token}` } }).catch(() => null);
  return response?.json().catch(() => null) ?? { error: 'the server does not answer' };
}

/// What a device did, or null where the server does not say.
export async function fetchHistory(token, { host, device, measures, from, to, points }) {
  const query = new URLSearchParams({ host, device, measures: measures.join(','), from, to, points });
  const response = await fetch(`/api/history?${query}`, { headers: { authorization: `Bearer ${token}` } }).catch(() => null);
  return response?.ok ? response.json() : null;
}
