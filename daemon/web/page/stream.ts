// The daemon's stream, for the page and its workers.
import type { Streamed } from './api';

const AGAIN = 2000; // ms
const NAMED = ['alert', 'incident', 'notice', 'gap', 'fault'] as const;

type Hear = { [name in keyof Streamed]?: (said: Streamed[name]) => void };

/** A stream that connects again by itself, behind the last event that it brought; on: what to call by the name of an event, '' for
 * results. Returns what ends it. */
export function stream(query: Record<string, string>, on: Hear, told: (well: boolean) => void): () => void {
  let source: EventSource, again: ReturnType<typeof setTimeout> | undefined, last = '';
  function hear<Name extends keyof Streamed>(name: Name, e: MessageEvent<string>): void {
    if (name && e.lastEventId) last = e.lastEventId;
    on[name]?.(JSON.parse(e.data) as Streamed[Name]);
  }
  function open(): void {
    source = new EventSource('/api/v1/stream?' + new URLSearchParams({ ...query, ...(last ? { since: last } : {}) }));
    source.onopen = () => told(true);
    source.onerror = () => {
      told(false);
      if (source.readyState === EventSource.CLOSED) again = setTimeout(open, AGAIN); // an answer that was no stream: browsers give up
    };
    source.onmessage = e => hear('', e);
    for (const name of NAMED) source.addEventListener(name, e => hear(name, e as MessageEvent<string>));
  }
  open();
  return () => { clearTimeout(again); source.close(); };
}
