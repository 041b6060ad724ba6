// The page: follows the snapshots of the server, and shows them.
import { render } from 'preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import 'uplot/dist/uPlot.min.css';
import './page.css';
import { RANGES, parseAddress, takeToken } from './address.js';
import { Lanes } from './lanes.jsx';
import { Map_ } from './map.jsx';
import { coloursOf, hostsOf, idleTimes } from './model.js';
import { Panel } from './panel.jsx';
import { Runs } from './runs.jsx';
import { agentSentence, topSentence } from './sentences.js';
import { fetchHistory, follow } from './stream.js';
import { Alerts, DeviceTable, Queue } from './tables.jsx';
import { clock } from './text.js';

const COLOURS = 7;
const POINTS = 360;
const NARROWEST = 640;
const embedded = new URLSearchParams(location.search).get('embed');

function useAddress() {
  const [address, setAddress] = useState(() => parseAddress(location.hash));
  useEffect(() => {
    const update = () => {
      takeToken();
      setAddress(parseAddress(location.hash));
    };
    addEventListener('hashchange', update);
    return () => removeEventListener('hashchange', update);
  }, []);
  return address;
}

function useSnapshot(token) {
  const [state, setState] = useState({ snapshot: null, trouble: '' });
  useEffect(() => {
    const stop = new AbortController();
    follow(token, {
      signal: stop.signal,
      onSnapshot: (snapshot) => setState({ snapshot, trouble: '' }),
      onTrouble: (trouble) => setState((before) => ({ ...before, trouble })),
    });
    return () => stop.abort();
  }, [token]);
  return state;
}

/// How busy each device was, and how it waited, in the chosen time, by its key; read again once there is a step more of it.
function useHistories(hosts, token, nowS, range) {
  const [histories, setHistories] = useState(new Map());
  const devices = hosts.flatMap((host) => host.devices);
  const step = Math.floor(nowS / Math.max(5, RANGES[range] / POINTS));
  useEffect(() => {
    let isCurrent = true;
    const queue = [...devices];
    const read = async (got) => {
      for (let view = queue.shift(); view && isCurrent; view = queue.shift()) {
        const query = { host: view.host, device: view.id, measures: ['busy', 'waiting', 'throttled'], from: nowS - RANGES[range], to: nowS, points: POINTS };
        const history = await fetchHistory(token, query);
        if (history) got.set(view.key, history);
      }
    };
    const got = new Map();
    Promise.all([read(got), read(got), read(got)]).then(() => isCurrent && setHistories(got));
    return () => { isCurrent = false; };
  }, [step, range, devices.map((view) => view.key).join(' ')]);
  return histories;
}

function useWidth(place) {
  const [width, setWidth] = useState(1000);
  useEffect(() => {
    const watch = new ResizeObserver(([entry]) => setWidth(Math.max(NARROWEST, Math.floor(entry.contentRect.width))));
    watch.observe(place.current);
    return () => watch.disconnect();
  }, []);
  return width;
}

function Page({ token }) {
  const address = useAddress();
  const { snapshot, trouble } = useSnapshot(token);
  const hosts = useMemo(() => (snapshot ? hostsOf(snapshot) : []), [snapshot]);
  const nowS = snapshot?.time_s ?? 0;
  const histories = useHistories(hosts, token, nowS, address.range);
  const idle = idleTimes(hosts, histories);
  const colours = useMemo(() => coloursOf(hosts, COLOURS), [snapshot]);
  const main = useRef();
  const width = useWidth(main);
  const chosen = hosts.flatMap((host) => host.devices).find((view) => view.key === address.gpu);
  const sentence = snapshot ? topSentence(hosts, idle) : 'Reading the machine.';
  useEffect(() => { document.title = hosts.length > 0 ? `${hosts[0].name} – remuda` : 'remuda'; }, [hosts[0]?.name]);
  const old = hosts.map((host) => agentSentence(host, clock(host.agent?.known_s ?? 0))).filter(Boolean).join('; ');
  const show = (part) => !embedded || embedded === part;
  return (
    <>
      <header>
        <p class="brand">remuda{snapshot && <span> {snapshot.source === 'recording' ? 'a recording, at ' : ''}<time>{clock(nowS, true)}</time></span>}</p>
        <h1>{sentence.replace(/(\d) /g, '$1\u00a0')}</h1>
        <p class="trouble" role="status">{trouble ? `${trouble}${snapshot ? `; what you see is of ${clock(nowS, true)}` : ''}` : old}</p>
      </header>
      <div class={`columns${chosen ? ' with-panel' : ''}${trouble && snapshot ? ' stale' : ''}`}>
        <main ref={main}>
          {snapshot && (
            <>
              {show('map') && <Map_ width={width} hosts={hosts} colours={colours} address={address} idle={idle} token={token} />}
              {show('lanes') && <Lanes hosts={hosts} histories={histories} nowS={nowS} address={address} colours={colours} width={width} />}
              {!embedded && (
                <>
                  <Runs hosts={hosts} colours={colours} />
                  <div class="pair">
                    <Queue hosts={hosts} nowS={nowS} />
                    <Alerts hosts={hosts} nowS={nowS} address={address} />
                  </div>
                  <DeviceTable hosts={hosts} address={address} />
                </>
              )}
            </>
          )}
        </main>
        {chosen && <Panel view={chosen} token={token} nowS={nowS} address={address} />}
      </div>
    </>
  );
}

render(<Page token={takeToken()} />, document.getElementById('app'));
