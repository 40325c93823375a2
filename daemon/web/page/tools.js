// What all views use. Text goes into the page as text alone: a sensor may be named anything.
export { stream } from './stream.js';

/** An element: make('p', {class: 'quiet'}, 'text', child...). */
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else if (value !== undefined && value !== false) element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

/** Asks the API; a fault is an Error with what the daemon says, and its status. */
export async function ask(path, body) {
  const how = body === undefined ? {} : { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) };
  const answer = await fetch('/api/v1/' + path, how);
  const said = await answer.json().catch(() => ({}));
  if (answer.ok) return said;
  const fault = new Error(said.detail || `status ${answer.status}`);
  fault.status = answer.status;
  throw fault;
}

// Times of the API are ns: more than a double holds to the last digit, and as exact as anybody reads them.
const instant = ns => new Date(ns / 1e6);
const sameDay = (a, b) => a.toDateString() === b.toDateString();

export function clock(ns, seconds = false) {
  const at = instant(ns);
  const day = sameDay(at, new Date()) ? {} : { year: 'numeric', month: 'short', day: 'numeric' };
  return at.toLocaleString(undefined, { ...day, hour: '2-digit', minute: '2-digit', ...(seconds ? { second: '2-digit' } : {}) });
}

export function ago(ns) {
  const s = Math.round(Date.now() / 1000 - ns / 1e9);
  const [n, unit] = Math.abs(s) < 90 ? [s, 'second'] : Math.abs(s) < 5400 ? [s / 60, 'minute'] : Math.abs(s) < 129600 ? [s / 3600, 'hour']
    : Math.abs(s) < 63072000 ? [s / 86400, 'day'] : [s / 31557600, 'year'];
  return new Intl.RelativeTimeFormat('en', { numeric: 'always' }).format(-Math.round(n), unit);
}

/** A time in the viewer's zone, with UTC on hover. */
export function time(ns, text = clock(ns)) {
  const utc = instant(ns).toISOString();
  return make('time', { datetime: utc, title: utc.replace('T', ' ').replace('Z', ' UTC') }, text);
}

export function number(x) {
  return x === null || x === undefined ? '?' : Math.abs(x) >= 1e6 || (x !== 0 && Math.abs(x) < 1e-3) ? x.toExponential(3) : String(+x.toPrecision(4));
}

export const count = n => Number(n).toLocaleString();
export const bytes = n => n < 1e4 ? `${n} B` : n < 1e7 ? `${(n / 1e3).toFixed(0)} kB` : n < 1e10 ? `${(n / 1e6).toFixed(0)} MB` : `${(n / 1e9).toFixed(1)} GB`;
export const colour = name => getComputedStyle(document.documentElement).getPropertyValue('--' + name).trim();
/** A companion's name ends with its algorithm; what people call it is the sensor's. */
export const primary = name => name.replace(/#(ika|svd|graph|shift|novelty|limit)$/, '');
export const link = (name, text = name) => make('a', { href: '#sensor/' + encodeURIComponent(name) }, text);

/** A day as people call it, or the time of one that is today. */
const day = ns => sameDay(instant(ns), new Date()) ? clock(ns)
  : instant(ns).toLocaleDateString(undefined, { day: 'numeric', month: 'long', ...(instant(ns).getFullYear() === new Date().getFullYear() ? {} : { year: 'numeric' }) });

/** What is new, of an alert of the channel novelty. */
function novelty(a) {
  const n = a.novelty, all = n ? `${count(n.compared)} points` : '';
  if (!n) return ['does what it has not done before: ', number(a.after), ' where ', number(a.before), ' was expected'];
  if (n.kind === 'shape') return [`makes a shape that was not seen in ${all}`];
  if (n.kind === 'context') return [`has a mean of ${number(a.after)} over its last ${n.reach} points, where ${number(a.before)} was expected`];
  return [`value ${number(a.after)} ${a.after > n.high ? 'is the highest' : a.after < n.low ? 'is the lowest' : 'was not seen'} in ${all}`];
}

/** When it was like that before, or nearest to it. */
function before(a) {
  const at = a.similar_from ?? a.novelty?.nearest;
  return at ? [a.similar_from ? '; like ' : '; most like ', time(at, day(at))] : [];
}

/** When a limit is reached, from now on: what its alert says. */
function ahead(a) {
  const { limit, slope, earliest, reached, latest } = a.limit, now = Date.now() * 1e6, falls = slope < 0;
  const left = ns => Math.max(ns - now, 0) / 3.6e12, longest = left(latest ?? earliest), [unit, name] = longest < 2 ? [1 / 60, 'min'] : longest < 72 ? [1, 'h'] : [24, 'days'];
  const first = Math.floor(left(earliest) / unit), last = Math.ceil(longest / unit);
  const range = longest === 0 ? 'by now' : latest === null ? `in ${first} ${name} or later` : last <= first + 1 ? `in ${last} ${name}` : `in ${first} to ${last} ${name}`;
  const rate = ['; now ', number(a.after), falls ? ', falls by ' : ', grows by ', number(Math.abs(slope) * 3600), ' an hour'];
  return reached <= a.time ? ['has reached its limit ', number(limit), ...rate] : [falls ? 'falls to ' : 'reaches ', number(limit), ' ', range, ', about ', time(reached), ...rate];
}

/** What an alert says, in a sentence of nodes. */
export function sentence(a) {
  const about = [link(primary(a.sensor)), ': '];
  if (a.channel === 'novelty') about.push(...novelty(a));
  else if (a.limit) return [...about, ...ahead(a)];
  else if (a.channel === 'group') about.push('its sensors, taken together, behave differently');
  else if (a.channel === 'score') about.push('looks unlike what it was; level ', number(a.before), ' before, ', number(a.after), ' after');
  else if (a.channel === 'change') about.push('behaves differently; level ', number(a.before), ' before, ', number(a.after), ' after');
  else about.push('level went from ', number(a.before), ' to ', number(a.after));
  const blame = a.secondary ? ['; secondary: ', ...(a.by && !a.acknowledged ? [link(a.by)] : ['another sensor of its field']), ' is to blame'] : [];
  return [...about, ' at ', time(a.instant), ', ', time(a.instant, ago(a.instant)), ...before(a), ...blame];
}

/** A canvas' context, cleared, in CSS pixels. */
export function paint(canvas) {
  const { width, height } = canvas.getBoundingClientRect(), ratio = devicePixelRatio || 1;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
  }
  const context = canvas.getContext('2d');
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return [context, width, height];
}

/** Values around an alert's instant, with its levels; look: what the device has of the sensor. */
export function spark(canvas, look, a) {
  const { points, interval } = look, last = points.at(-1)?.[0];
  if (!last || points[0][0] > a.instant) { levels(canvas, a); return; }
  const before = Math.max(last - a.instant, 60 * interval), from = a.instant - before, shown = points.filter(p => p[0] >= from);
  const [g, width, height] = paint(canvas), low = Math.min(...shown.map(p => p[1])), high = Math.max(...shown.map(p => p[1])), begin = shown[0][0];
  const x = t => 2 + (width - 4) * (t - begin) / (last - begin || 1), y = v => 4 + (height - 8) * (1 - (v - low) / (high - low || 1));
  for (const [l, r, level, name] of [[begin, a.instant, a.before, 'before'], [a.instant, last, a.after, 'after']]) {
    g.fillStyle = colour(name);
    g.globalAlpha = .5;
    g.fillRect(x(l), y(Math.max(low, Math.min(high, level))) - 1.5, x(r) - x(l), 3);
    g.globalAlpha = 1;
  }
  g.strokeStyle = colour('accent');
  g.lineWidth = 1.3;
  g.beginPath();
  shown.forEach(([t, v], i) => (i ? g.lineTo(x(t), y(v)) : g.moveTo(x(t), y(v))));
  g.stroke();
  g.setLineDash([3, 3]);
  g.strokeStyle = colour(a.level || 'notice');
  g.beginPath();
  g.moveTo(x(a.instant), 0);
  g.lineTo(x(a.instant), height);
  g.stroke();
  g.setLineDash([]);
}

/** The levels before and after an alert, and how far values lay about them. */
export function levels(canvas, a) {
  const [g, width, height] = paint(canvas);
  const low = Math.min(a.before - a.spread_before, a.after - a.spread_after), high = Math.max(a.before + a.spread_before, a.after + a.spread_after);
  const y = v => 6 + (height - 12) * (1 - (v - low) / (high - low || 1)), middle = width / 2;
  for (const [from, to, level, spread, name] of [[2, middle, a.before, a.spread_before, 'before'], [middle, width - 2, a.after, a.spread_after, 'after']]) {
    g.fillStyle = g.strokeStyle = colour(name);
    g.globalAlpha = .2;
    g.fillRect(from, y(level + spread), to - from, Math.max(1, y(level - spread) - y(level + spread)));
    g.globalAlpha = 1;
    g.lineWidth = 2;
    g.beginPath();
    g.moveTo(from, y(level));
    g.lineTo(to, y(level));
    g.stroke();
  }
  g.setLineDash([3, 3]);
  g.lineWidth = 1;
  g.strokeStyle = colour('quiet');
  g.beginPath();
  g.moveTo(middle, 0);
  g.lineTo(middle, height);
  g.stroke();
  g.setLineDash([]);
}
