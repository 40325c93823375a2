// One sensor: values, scores of all its algorithms, and its alerts, on one axis of time, live.
import { ask, clock, colour, make, number, paint, sentence, stream, time } from './tools.js';

const KEPT = 20000; // points
const EDGE = 52; // px left of the axis
const SERIES = ['accent', 'after', 'notice', 'warning', 'before'];

function frame(canvas, low, high, from, to) {
  const [g, width, height] = paint(canvas);
  const x = t => EDGE + (width - EDGE - 8) * (t - from) / (to - from || 1), y = v => 8 + (height - 30) * (1 - (v - low) / (high - low || 1));
  g.font = '12px system-ui, sans-serif';
  g.fillStyle = colour('quiet');
  g.strokeStyle = colour('line');
  for (let i = 0; i <= 3; i++) {
    const v = low + (high - low) * i / 3;
    g.beginPath();
    g.moveTo(EDGE, y(v));
    g.lineTo(width - 8, y(v));
    g.stroke();
    g.textAlign = 'right';
    g.fillText(number(v), EDGE - 6, y(v) + 4);
  }
  g.textAlign = 'left';
  g.fillText(clock(from), EDGE, height - 6);
  g.textAlign = 'right';
  g.fillText(clock(to), width - 8, height - 6);
  return [g, x, y, height];
}

function line(g, points, x, y) {
  g.beginPath();
  let pen = false;
  for (const [t, v] of points) {
    if (v === null) { pen = false; continue; }
    if (pen) g.lineTo(x(t), y(v));
    else g.moveTo(x(t), y(v));
    pen = true;
  }
  g.stroke();
}

function extent(values) {
  let low = Infinity, high = -Infinity;
  for (const v of values) if (v !== null) { low = Math.min(low, v); high = Math.max(high, v); }
  return low > high ? [0, 1] : low === high ? [low - 1, high + 1] : [low, high];
}

export async function sensor(place, { told, name, alive }) {
  const glob = name.replace(/[*?]/g, '?');
  const kin = await ask('sensors?limit=20&glob=' + encodeURIComponent(glob + '*'));
  const own = kin.sensors.filter(s => s.name === name || s.name.startsWith(name + '#'));
  const values = make('canvas', { class: 'series', role: 'img', 'aria-label': 'values' }), scores = make('canvas', { class: 'scores', role: 'img', 'aria-label': 'scores' });
  const legend = make('p', { class: 'quiet' }), state = make('p', { class: 'quiet', role: 'status' }), list = make('div');
  place.append(make('h1', {}, name));
  if (own.length === 0) {
    place.append(make('div', { class: 'empty' }, make('p', {}, 'The daemon knows no sensor of this name.')));
    told(true);
    return undefined;
  }
  place.append(values, scores, legend, state, make('h2', {}, 'Alerts'), list);
  const log = new Map(own.map(s => [s.name, []])), points = [];
  let events = [], waiting = false;
  const past = await ask(`events?limit=10000&glob=${encodeURIComponent(glob + '*')}`).catch(() => ({ events: [] }));
  events = past.events.filter(e => log.has(e.sensor));

  function draw() {
    waiting = false;
    const shown = events.filter(e => e.event === 'raised').slice(-30).reverse();
    list.replaceChildren(...(shown.length ? shown.map(e => make('p', {}, ...sentence(e), ` (${e.channel}, ${e.level})`)) : [make('p', { class: 'quiet' }, 'none that is known')]));
    state.textContent = points.length ? '' : 'Waiting for its next point: values are shown from now on.';
    if (!points.length) { paint(values); paint(scores); return; }
    const from = points[0][0], to = points[points.length - 1][0];
    const [g, x, y] = frame(values, ...extent(points.map(p => p[1])), from, to);
    g.strokeStyle = colour('accent');
    g.lineWidth = 1.3;
    line(g, points, x, y);
    const [s, sx, sy, height] = frame(scores, 0, 1, from, to);
    [...log].forEach(([, rows], i) => { s.strokeStyle = colour(SERIES[i % SERIES.length]); s.lineWidth = 1.3; line(s, rows, sx, sy); });
    for (const [c, at, h] of [[g, x, 260], [s, sx, height]])
      for (const e of events.filter(e => e.event === 'raised' && e.instant >= from && e.instant <= to)) {
        c.strokeStyle = colour('severe');
        c.setLineDash([4, 3]);
        c.beginPath();
        c.moveTo(at(e.instant), 4);
        c.lineTo(at(e.instant), h - 24);
        c.stroke();
        c.setLineDash([]);
      }
    legend.replaceChildren('Last value ', number(points[points.length - 1][1]), ' at ', time(to), '. Scores: ',
      ...own.map((one, i) => { const part = make('span', {}, `${one.algorithm || 'score'}  `); part.style.color = colour(SERIES[i % SERIES.length]); return part; }));
  }
  const soon = () => { if (!waiting) { waiting = true; requestAnimationFrame(() => alive() && draw()); } };
  const end = stream({ what: 'results,events', glob: glob + '*' }, {
    '': r => {
      const rows = log.get(r.sensor);
      if (!rows || r.state === 'late' || r.state === 'rejected') return;
      rows.push([r.time, r.score]);
      if (rows.length > KEPT) rows.splice(0, KEPT / 10);
      if (r.sensor === own[0].name) points.push([r.time, r.value]);
      if (points.length > KEPT) points.splice(0, KEPT / 10);
      soon();
    },
    alert: e => { if (log.has(e.sensor)) { events.push(e); soon(); } },
  }, told);
  soon();
  addEventListener('resize', soon);
  return () => { end(); removeEventListener('resize', soon); };
}
