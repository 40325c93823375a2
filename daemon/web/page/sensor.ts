// One sensor: what its device has of it and what comes, scores of all its algorithms, its alerts, and what would change these.
import type { Event, Logged, Look, Point, Series, Status } from './api';
import { chart, SERIES } from './chart';
import type { Charted, Marked, Scores } from './chart';
import { ask, entry, fault, make, number, sentence, stream, time } from './tools';
import type { Child, View } from './tools';

const KEPT = 20000; // points
const PAST = 10000; // scores of each algorithm

/** An alert: all events of it, as one. */
type Raised = Event & Marked & { raised: number; cleared: boolean };

/** A file for the viewer's disk. */
function save(name: string, blob: Blob | null): void {
  if (!blob) return;
  const a = make('a', { href: URL.createObjectURL(blob), download: name });
  a.click();
  setTimeout(() => URL.revokeObjectURL(a.href), 10000);
}

/** Raised and corrected events of an alert, and how long it stood, as one. */
function alerts(events: Event[], last: number): Raised[] {
  const out = new Map<string, Raised>();
  for (const e of events) {
    const key = `${e.sensor}:${e.number ?? e.id}`, known = out.get(key);
    if (e.event === 'raised' || (e.event === 'corrected' && known)) out.set(key, { ...known, ...e, raised: known?.raised ?? e.time, until: last, cleared: false });
    else if (e.event === 'cleared' && known) Object.assign(known, { until: e.time, cleared: true });
  }
  return [...out.values()].sort((a, b) => a.instant - b.instant);
}

function csv(points: Point[], log: Map<string, Scores>): string {
  const rows = new Map(points.map(([t, v]) => [t, [v]])), names = [...log.keys()];
  names.forEach((name, i) => log.get(name)?.forEach(([t, s]) => { const row = rows.get(t); if (row) row[1 + i] = s; }));
  const cell = (text: string): string => /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  return ['time,value,' + names.map(n => cell('score ' + n)).join(',')].concat([...rows].sort((a, b) => a[0] - b[0]).map(([t, row]) =>
    [new Date(t / 1e6).toISOString(), ...Array.from({ length: 1 + names.length }, (_, i) => row[i] ?? '')].join(','))).join('\n') + '\n';
}

/** What was known, with what the daemon has: that is without holes, and may begin later. */
function joined(known: Scores, has: Scores): Scores {
  const first = has[0]?.[0] ?? Infinity, last = has.at(-1)?.[0] ?? -Infinity;
  return [...known.filter(s => s[0] < first), ...has, ...known.filter(s => s[0] > last && s[0] >= first)];
}

/** What a threshold is, in words. */
function threshold(s: Series, scored: boolean): string {
  const t = s.threshold;
  if (!t) return 'waits for its first point';
  if (!scored && (s.samples ?? 0) < (s.span ?? 0) && t.mode !== 'off' && !s.alert) return `warming up: ${s.samples} of ${s.first ?? s.span} samples`;
  if (s.keys.provisional === 'yes' && (s.samples ?? 0) < (s.span ?? 0)) return `provisional, by a window of 12: ${s.samples} of ${s.span} samples`;
  if (t.mode === 'off') return 'no alerts (alert = off)';
  if (t.mode === 'fixed') return `alerts from a score of ${number(t.value)} on`;
  return t.value === undefined ? `learning its threshold: ${t.blocks} of 4 blocks` : `alerts where the evidence is over ${number(t.value)}, learned from ${t.blocks} blocks`;
}

/** Keys of the detectors, and the lines that would change them. */
function keys(series: Series[]): HTMLElement {
  const several = series.length > 1, section = series[0].section.replace(/#.*/, '');
  const text = [`[detector ${section}]`, ...(several ? ['algorithm = ' + series.map(s => s.algorithm).join(', ')] : []),
    ...series.flatMap(s => Object.entries(s.keys).filter(([k]) => !(several && k === 'algorithm')).map(([k, v]) => `${several ? s.algorithm + '.' : ''}${k} = ${v}`))];
  return make('details', {}, make('summary', {}, 'What its detector is, and how to change it'),
    make('p', { class: 'quiet' }, 'These are the values in force. To change one, put its line with the new value into this section of the configuration, and run ', make('code', {}, 'hankel reload'), '.'),
    make('pre', {}, text.join('\n')));
}

/** Where values were, and where they are. */
function normal(look: Look, points: Point[], events: Raised[]): Node | string {
  const own = look.series[0], last = points.at(-1);
  if (!last || own.baseline === undefined) return '';
  const stands = events.filter(a => !a.cleared && a.novelty?.kind !== 'shape').at(-1), n = stands?.novelty; // a shape has no levels
  const was: [string, string] = !stands ? [number(own.baseline), ' is normal (slow mean)'] : !n ? [number(stands.before), ' was normal']
    : n.kind === 'value' ? [`${number(n.low)} to ${number(n.high)}`, ' was the range'] : [number(stands.before), ' was expected'];
  const is: Child[] = !stands ? [' is its last value, ', time(last[0])] : [!n ? ' is the level now' : n.kind === 'value' ? ' is the new value' : ` is the mean of the last ${n.reach} points`];
  return make('p', { class: 'compare' }, make('span', {}, make('b', { class: 'before' }, was[0]), was[1]), make('span', {}, make('b', { class: stands ? 'after' : '' }, number(stands ? stands.after : last[1])), ...is));
}

export const sensor: View = async (place, { told, name, alive }) => {
  let look: Look;
  place.append(make('h1', {}, name));
  try { look = await ask<Look>(`sensors/?scores=${PAST}&name=${encodeURIComponent(name)}`); } catch (why) {
    if (fault(why).status !== 404) throw why;
    place.append(make('div', { class: 'empty' }, make('p', {}, 'The daemon knows no sensor of this name.')));
    told(true);
    return undefined;
  }
  const log = new Map(look.series.map((s): [string, Scores] => [s.sensor, s.scores])), glob = name.replace(/[*?]/g, '?') + '*';
  const logged = (await ask<Status>('status')).durability.events_last !== undefined;
  const none: Logged<'events', Event> = { events: [], position: 0, last: 0 };
  const past = logged ? await ask<typeof none>(`events?limit=10000&glob=${encodeURIComponent(glob)}`).catch(() => none) : none;
  let points = look.points, events = past.events.filter(e => log.has(e.sensor)), waiting = false, told_of: Raised[] = [];

  const list = make('div'), legend = make('p', { class: 'quiet legend' }), beside = make('div'), state = make('span', { class: 'quiet', role: 'status' }), at = make('span', { class: 'quiet' });
  const data = (): Charted => ({ points, scores: [...log.values()], thresholds: look.series.map(s => s.threshold?.mode === 'fixed' ? s.threshold.value : undefined), alerts: told_of });
  const follow = make('button', { 'aria-pressed': 'true', onclick: () => view.follow() }, 'Live');
  const view = chart(data, live => follow.setAttribute('aria-pressed', String(live)), (...what) => at.replaceChildren(...what));
  const file = name.replace(/[^\w.-]+/g, '_');
  const bar = make('div', { class: 'filters' }, follow, make('button', { onclick: () => view.all() }, 'All'), make('button', { onclick: () => view.zoom(.5), 'aria-label': 'Zoom in' }, '+'),
    make('button', { onclick: () => view.zoom(2), 'aria-label': 'Zoom out' }, '\u2212'), make('button', { onclick: () => save(file + '.csv', new Blob([csv(points, log)], { type: 'text/csv' })) }, 'CSV'),
    make('button', { onclick: () => view.canvas()?.toBlob(b => save(file + '.png', b)) }, 'PNG'), state, at);
  place.append(beside, view.root, legend, bar, keys(look.series), ...(look.machine ? [make('p', { class: 'quiet' }, `Scored by ${look.machine}, in partition ${look.partition}.`)] : []), make('h2', {}, 'Alerts'), list);

  function refresh(): void {
    told_of = alerts(events, points.at(-1)?.[0] ?? 0);
    list.replaceChildren(...(told_of.length ? told_of.slice(-30).reverse().map(e => make('p', { class: e.level }, make('span', { class: 'badge' }, e.level), ' ', ...sentence(e), ` (${e.channel}${e.cleared ? '' : ', stands'})`))
      : [make('p', { class: 'quiet' }, 'None that is known.')]));
  }
  function draw(): void {
    waiting = false;
    const last = points.at(-1);
    for (const a of told_of) if (!a.cleared) a.until = last?.[0] ?? a.until;
    view.draw();
    beside.replaceChildren(normal(look, points, told_of));
    state.textContent = last ? '' : 'Waiting for its first point.';
    legend.replaceChildren(...look.series.map((s, i) => {
      const score = log.get(s.sensor)?.at(-1)?.[1] ?? null;
      return entry({ colour: SERIES[i % SERIES.length] }, `${s.algorithm}${score === null ? '' : ' ' + score.toFixed(3)}: ${threshold(s, score !== null)}`);
    }));
  }
  const soon = (): void => { if (!waiting) { waiting = true; requestAnimationFrame(() => alive() && draw()); } };
  async function again(): Promise<void> { // what was missed, and what has been learned meanwhile
    look = await ask<Look>(`sensors/?scores=${PAST}&name=${encodeURIComponent(name)}`);
    for (const s of look.series) log.set(s.sensor, joined(log.get(s.sensor) ?? [], s.scores));
    const first = look.points[0]?.[0] ?? Infinity;
    points = points.filter(p => p[0] < first).concat(look.points);
    soon();
  }
  let lost = false;
  const end = stream({ what: 'results,events', glob, ...(past.position ? { since: String(past.position) } : {}) }, {
    '': r => {
      const rows = log.get(r.sensor);
      if (!rows || r.state === 'late' || r.state === 'rejected') return;
      if (r.time > (rows.at(-1)?.[0] ?? 0) && (r.score !== null || r.state === 'warming')) rows.push([r.time, r.score]); // the look may have had it
      if (rows.length > KEPT) rows.splice(0, KEPT / 10);
      if (r.sensor === name && r.time > (points.at(-1)?.[0] ?? 0)) points.push([r.time, r.value]);
      if (points.length > KEPT) points.splice(0, KEPT / 10);
      soon();
    },
    alert: e => { if (log.has(e.sensor)) { events.push(e); refresh(); soon(); } },
    gap: () => again().catch(() => {}),
  }, well => { told(well); if (well && lost) again().catch(() => {}); lost = !well; });
  const learned = setInterval(() => alive() && again().catch(() => {}), 30000);
  const dark = matchMedia('(prefers-color-scheme: dark)');
  refresh();
  soon();
  addEventListener('resize', soon);
  dark.addEventListener('change', soon);
  return () => { end(); clearInterval(learned); removeEventListener('resize', soon); dark.removeEventListener('change', soon); view.end(); };
};
