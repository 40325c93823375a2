// The daemon's stream, for the page and its workers.

const AGAIN = 2000; // ms

/** A stream that connects again by itself, behind the last event that it brought; on: what to call by the name of an event, '' for
 * results. Returns what ends it. */
export function stream(query, on, told) {
  let source, again, last;
  const kept = e => { if (e.lastEventId) last = e.lastEventId; };
  function open() {
    source = new EventSource('/api/v1/stream?' + new URLSearchParams({ ...query, ...(last ? { since: last } : {}) }));
    source.onopen = () => told(true);
    source.onerror = () => {
      told(false);
      if (source.readyState === EventSource.CLOSED) again = setTimeout(open, AGAIN); // an answer that was no stream: browsers give up
    };
    source.onmessage = e => on['']?.(JSON.parse(e.data));
    for (const name of ['alert', 'incident', 'notice', 'gap', 'fault']) source.addEventListener(name, e => { kept(e); on[name]?.(JSON.parse(e.data)); });
  }
  open();
  return () => { clearTimeout(again); source.close(); };
}
