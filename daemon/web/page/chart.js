// Values above, scores below, on one axis of time. Wheel, drag and keys zoom and pan; the right edge follows what comes until somebody moves it.
import { colour, make, number, paint } from './tools.js';

const LEFT = 58, RIGHT = 12, TOP = 10, BOTTOM = 22, BETWEEN = 18; // px
const SCORES = 0.3; // of the height
const SECOND = 1e9;
const STEPS = [.001, .002, .005, .01, .02, .05, .1, .2, .5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800, 2592000, 31536000];
export const SERIES = ['accent', 'after', 'notice', 'warning', 'before'];

function label(ns, step) {
  const at = new Date(ns / 1e6);
  if (step >= 86400) return at.toLocaleDateString(undefined, { month: 'short', day: 'numeric', ...(step > 1e7 ? { year: 'numeric' } : {}) });
  const part = step < 1 ? { second: '2-digit', fractionalSecondDigits: step < .01 ? 3 : step < .1 ? 2 : 1 } : step < 60 ? { second: '2-digit' } : {};
  return at.toLocaleTimeString(undefined, { hour: '2-digit', minute: '2-digit', ...part });
}

/** Ticks of the axis of time, at round times of the viewer's zone: [ns, text]. */
function ticks(from, to, most) {
  const seconds = (to - from) / SECOND, step = STEPS.find(s => seconds / s <= most) ?? STEPS.at(-1);
  const zone = step >= 3600 ? new Date(from / 1e6).getTimezoneOffset() * 60 * SECOND : 0, out = [];
  for (let t = Math.ceil((from - zone) / (step * SECOND)) * step * SECOND + zone; t <= to && out.length < 50; t += step * SECOND) out.push([t, label(t, step)]);
  return out;
}

export function extent(values) {
  let low = Infinity, high = -Infinity;
  for (const v of values) if (v !== null && v !== undefined) { low = Math.min(low, v); high = Math.max(high, v); }
  if (low > high) return [0, 1];
  const room = (high - low || Math.abs(high) || 1) * .06;
  return [low - room, high + room];
}

/** Round numbers from low to high, about so many. */
function round(low, high, about) {
  const rough = (high - low) / about || 1, ten = 10 ** Math.floor(Math.log10(rough)), step = [1, 2, 2.5, 5, 10].find(m => m * ten >= rough) * ten, out = [];
  for (let v = Math.ceil(low / step) * step; v <= high && out.length < 20; v += step) out.push(Math.abs(v) < step / 1e6 ? 0 : v);
  return out;
}

function frame(g, box, low, high, lines) {
  g.strokeStyle = colour('line');
  g.fillStyle = colour('quiet');
  g.lineWidth = 1;
  g.textAlign = 'right';
  const y = v => box.y + box.height * (1 - (v - low) / (high - low || 1));
  for (const v of round(low, high, lines)) {
    g.beginPath();
    g.moveTo(box.x, y(v));
    g.lineTo(box.x + box.width, y(v));
    g.stroke();
    g.fillText(number(v), box.x - 6, y(v) + 4);
  }
  return y;
}

function line(g, points, x, y, from, to) {
  g.beginPath();
  let pen = false;
  for (let i = 0; i < points.length; i++) {
    const [t, v] = points[i];
    if ((i + 1 < points.length && points[i + 1][0] < from) || (i > 0 && points[i - 1][0] > to)) continue;
    if (v === null) { pen = false; continue; }
    if (pen) g.lineTo(x(t), y(v));
    else g.moveTo(x(t), y(v));
    pen = true;
  }
  g.stroke();
}

/** data(): {points: [[ns, value]], scores: [[[ns, score]]...], thresholds: [score...], alerts: [{instant, from, until, before, after, spread_before, spread_after, level}]}, in order of time. */
export function chart(data, moved) {
  const canvas = make('canvas', { class: 'series', role: 'img', tabindex: '0', 'aria-label': 'Values and scores by time. Arrow keys move, plus and minus zoom, Home shows all.' });
  let from = 0, to = 0, live = true, span = 0, drag = null;

  function reach() {
    const { points } = data();
    return points.length ? [points[0][0], points[points.length - 1][0]] : [0, 1];
  }
  function range() {
    const [first, last] = reach();
    if (live) { to = last; from = span ? last - span : first; }
    return [from, to > from ? to : from + SECOND];
  }
  function set(a, b) {
    const [first, last] = reach(), width = Math.max((last - first) / 1e4, Math.min(b - a, (last - first) * 1.2 || SECOND));
    live = b >= last && a <= last;
    span = width;
    from = Math.max(first - width / 2, Math.min(a, last - width / 4));
    to = from + width;
    if (live && width >= last - first) span = 0;
    moved(live, span === 0);
    draw();
  }
  const zoom = (factor, around = (from + to) / 2) => { range(); set(around - (around - from) * factor, around + (to - around) * factor); };
  const pan = part => { range(); const by = (to - from) * part; set(from + by, to + by); };

  function levels(g, a, x, y, box) {
    for (const [begin, end, level, spread, name] of [[a.from, a.instant, a.before, a.spread_before, 'before'], [a.instant, a.until, a.after, a.spread_after, 'after']]) {
      if (level === null || level === undefined || end <= begin) continue;
      const left = Math.max(box.x, x(begin)), right = Math.min(box.x + box.width, x(end));
      if (right <= left) continue;
      g.fillStyle = g.strokeStyle = colour(name);
      g.globalAlpha = .16;
      g.fillRect(left, y(level + (spread || 0)), right - left, Math.max(1, y(level - (spread || 0)) - y(level + (spread || 0))));
      g.globalAlpha = 1;
      g.lineWidth = 2;
      g.beginPath();
      g.moveTo(left, y(level));
      g.lineTo(right, y(level));
      g.stroke();
    }
  }

  function draw() {
    const [g, width, height] = paint(canvas), { points, scores, thresholds, alerts } = data(), [a, b] = range();
    g.fillStyle = colour('card');
    g.fillRect(0, 0, width, height);
    g.font = '12px system-ui, "DejaVu Sans", sans-serif';
    const inner = { x: LEFT, width: width - LEFT - RIGHT }, tall = height - TOP - BOTTOM - BETWEEN;
    const upper = { ...inner, y: TOP, height: tall * (1 - SCORES) }, lower = { ...inner, y: TOP + tall * (1 - SCORES) + BETWEEN, height: tall * SCORES };
    const x = t => LEFT + inner.width * (t - a) / (b - a), seen = points.filter(p => p[0] >= a && p[0] <= b), near = alerts.filter(e => e.until >= a && e.from <= b);
    const y = frame(g, upper, ...extent(seen.map(p => p[1])), 4), s = frame(g, lower, 0, 1, 2);
    g.textAlign = 'center';
    for (const [t, text] of ticks(a, b, Math.max(2, Math.floor(inner.width / 110)))) {
      g.fillStyle = colour('quiet');
      g.fillText(text, Math.max(LEFT + 20, Math.min(width - 46, x(t))), height - 7);
      g.fillStyle = colour('line');
      g.fillRect(x(t), TOP, 1, tall + BETWEEN);
    }
    g.save();
    g.beginPath();
    g.rect(LEFT, 0, inner.width, height - BOTTOM);
    g.clip();
    for (const e of near) levels(g, e, x, y, upper);
    g.lineWidth = 1.4;
    g.strokeStyle = colour('accent');
    line(g, points, x, y, a, b);
    scores.forEach((rows, i) => {
      g.strokeStyle = colour(SERIES[i % SERIES.length]);
      line(g, rows, x, s, a, b);
      if (!thresholds[i]) return;
      g.setLineDash([2, 4]);
      g.beginPath();
      g.moveTo(LEFT, s(thresholds[i]));
      g.lineTo(width - RIGHT, s(thresholds[i]));
      g.stroke();
      g.setLineDash([]);
    });
    for (const e of near) {
      g.strokeStyle = colour(e.level || 'notice');
      g.setLineDash([5, 3]);
      g.beginPath();
      g.moveTo(x(e.instant), TOP);
      g.lineTo(x(e.instant), height - BOTTOM);
      g.stroke();
      g.setLineDash([]);
    }
    g.restore();
    canvas.dataset.from = a;
    canvas.dataset.to = b;
  }

  const time = e => { const box = canvas.getBoundingClientRect(), [a, b] = range(); return a + (b - a) * (e.clientX - box.left - LEFT) / (box.width - LEFT - RIGHT); };
  canvas.addEventListener('wheel', e => { e.preventDefault(); zoom(e.deltaY > 0 ? 1.25 : .8, time(e)); }, { passive: false });
  canvas.addEventListener('pointerdown', e => { range(); drag = { x: e.clientX, from, to }; canvas.setPointerCapture(e.pointerId); });
  canvas.addEventListener('pointermove', e => {
    if (!drag) return;
    const by = (drag.to - drag.from) * (drag.x - e.clientX) / (canvas.clientWidth - LEFT - RIGHT);
    if (Math.abs(drag.x - e.clientX) > 2) set(drag.from + by, drag.to + by);
  });
  for (const name of ['pointerup', 'pointercancel']) canvas.addEventListener(name, () => { drag = null; });
  canvas.addEventListener('dblclick', () => all());
  canvas.addEventListener('keydown', e => {
    const does = { ArrowLeft: () => pan(-.2), ArrowRight: () => pan(.2), '+': () => zoom(.6), '=': () => zoom(.6), '-': () => zoom(1.7), Home: all, End: follow }[e.key];
    if (does) { does(); e.preventDefault(); }
  });
  function all() { live = true; span = 0; moved(true, true); draw(); }
  function follow() { const width = to - from; live = true; span = span ? width : 0; moved(true, span === 0); draw(); }
  return { canvas, draw, zoom, all, follow, range };
}
