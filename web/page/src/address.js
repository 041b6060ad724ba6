// The state of the page in its address: #gpu=corral/gpu:3&range=6h&set=corral/gpu:0,corral/gpu:1&view=matrix. The token stands there once, and then no more.
import { MOST } from './set.js';

const KEY = 'remuda-token';

export const RANGES = { '15m': 900, '1h': 3600, '6h': 21600, '24h': 86400, '7d': 604800 };

export function parseAddress(hash) {
  const given = new URLSearchParams(hash.replace(/^#/, ''));
  return {
    token: given.get('token') ?? '',
    gpu: given.get('gpu') ?? '',
    range: Object.hasOwn(RANGES, given.get('range') ?? '') ? given.get('range') : '1h',
    set: (given.get('set') ?? '').split(',').filter(Boolean).slice(0, MOST),
    view: given.get('view') === 'matrix' ? 'matrix' : '',
  };
}

export function addressOf({ gpu, range, set, view }) {
  const kept = new URLSearchParams();
  if (gpu) kept.set('gpu', gpu);
  if (range && range !== '1h') kept.set('range', range);
  if (set?.length > 0) kept.set('set', set.join(','));
  if (view) kept.set('view', view);
  return `#${kept.toString().replaceAll('%2F', '/').replaceAll('%3A', ':').replaceAll('%2C', ',')}`;
}

/// The token of this tab: as the address has it, which it is then taken out of, or as it was before.
export function takeToken() {
  const given = parseAddress(location.hash);
  if (given.token) {
    sessionStorage.setItem(KEY, given.token);
    history.replaceState(null, '', location.pathname + location.search + addressOf(given));
  }
  return sessionStorage.getItem(KEY) ?? '';
}
