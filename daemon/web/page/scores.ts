// A worker that listens to scores for the wall, so that the page can draw meanwhile. It is sent a question once, and sends what is new
// some 30 times a second.
import type { Result } from './api';
import { stream } from './stream';

const EVERY = 33; // ms

/** Whose scores are wanted, and by which stream. */
export interface Question {
  names: string[];
  query: Record<string, string>;
}

/** Which of the names have new scores, and which; that an event came, which is no result; that the connection came or went. */
export interface Answer {
  places?: Uint32Array;
  scores?: Float32Array;
  event?: string;
  well?: boolean;
}

let at = new Map<string, number>(), scores = new Float32Array(0), seen = new Uint8Array(0), places: number[] = [];

const answer = (said: Answer, transfer: Transferable[] = []): void => postMessage(said, { transfer });
const place = (name: string): number | undefined => at.get(name) ?? at.get(name.replace(/#[a-z]+$/, ''));

function result(r: Result): void {
  const i = place(r.sensor);
  if (i === undefined) return;
  scores[i] = r.score ?? 0;
  if (!seen[i]) { seen[i] = 1; places.push(i); }
}

function flush(): void {
  if (!places.length) return;
  const which = Uint32Array.from(places), said = Float32Array.from(places, i => scores[i]);
  for (const i of places) seen[i] = 0;
  places = [];
  answer({ places: which, scores: said }, [which.buffer, said.buffer]);
}

addEventListener('message', ({ data: { names, query } }: MessageEvent<Question>) => {
  at = new Map(names.map((name, i) => [name, i]));
  scores = new Float32Array(names.length);
  seen = new Uint8Array(names.length);
  const pass = (event: string) => (): void => answer({ event });
  stream(query, { '': result, alert: pass('alert'), gap: pass('gap') }, well => answer({ well }));
  setInterval(flush, EVERY);
});
