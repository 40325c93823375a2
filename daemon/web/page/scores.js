// A worker that listens to scores for the wall, so that the page can draw meanwhile. It is sent {names, query} once, and sends
// {places, scores} some 30 times a second, {event} for what is no result, and {well} when the connection comes or goes.
import { stream } from './stream.js';

const EVERY = 33; // ms

let at = new Map(), scores = new Float32Array(0), seen = new Uint8Array(0), places = [];

const place = name => at.get(name) ?? at.get(name.replace(/#[a-z]+$/, ''));

function result(r) {
  const i = place(r.sensor);
  if (i === undefined) return;
  scores[i] = r.score;
  if (!seen[i]) { seen[i] = 1; places.push(i); }
}

function flush() {
  if (!places.length) return;
  const which = Uint32Array.from(places), said = Float32Array.from(places, i => scores[i]);
  for (const i of places) seen[i] = 0;
  places = [];
  postMessage({ places: which, scores: said }, [which.buffer, said.buffer]);
}

addEventListener('message', ({ data: { names, query } }) => {
  at = new Map(names.map((name, i) => [name, i]));
  scores = new Float32Array(names.length);
  seen = new Uint8Array(names.length);
  const pass = event => () => postMessage({ event });
  stream(query, { '': result, alert: pass('alert'), gap: pass('gap') }, well => postMessage({ well }));
  setInterval(flush, EVERY);
});
