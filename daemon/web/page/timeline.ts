// What was told, the newest first, by channel, name and time: alerts, and what operators told the daemon.
import type { Event, Logged, Status, Told } from './api';
import { ask, clock, make, number, primary, link, stream, time } from './tools';
import type { Child, View } from './tools';

const SHOWN = 500, AGAIN = 15000; // rows; ms
const CHANNELS = ['score', 'change', 'shift', 'group', 'novelty', 'limit'];
const OPERATORS = 'operators';
const WORDS: Record<string, string> = { expected: 'said to be expected', false: 'said to be false', undone: 'what was said is undone', maintenance: 'maintenance begins',
  'maintenance ended': 'maintenance ends', reloaded: 'configuration reloaded', 'reload refused': 'reload refused' };

const seldom = (...children: Child[]): HTMLElement => make('td', { class: 'seldom' }, ...children);

/** A row of an alert's event. */
function alert(e: Event): HTMLElement {
  const blame = e.secondary ? [', secondary', ...(e.by ? [' to ', link(e.by)] : [])] : [];
  const line = [`position ${number(e.after)}`, ...(e.by ? [', near ', link(e.by)] : []), `, ${number(e.spread_after)} a second`];
  const levels = e.event === 'acknowledged' ? [`by ${e.by}`] : e.travels ? line : e.novelty?.kind === 'shape' ? ['a new shape'] : [`${number(e.before)} to ${number(e.after)}`, ...blame];
  return make('tr', {}, make('td', {}, time(e.time, clock(e.time, true))), make('td', {}, link(primary(e.sensor))), make('td', {}, e.event), seldom(e.channel),
    make('td', { class: `${e.level}` }, make('span', { class: 'badge' }, e.level || '')), seldom(...levels));
}

/** A row of what somebody told the daemon. */
function told(t: Told): HTMLElement {
  const parts: Child[][] = [t.by ? [`by ${t.by}`] : [], t.text ? [t.text] : [], t.until ? ['until ', time(t.until)] : []].filter(part => part.length);
  const about = parts.flatMap((part, i) => (i ? [', ', ...part] : part));
  return make('tr', { class: 'told' }, make('td', {}, time(t.time, clock(t.time, true))), make('td', {}, t.sensor ? link(t.sensor) : t.match ?? ''), make('td', {}, WORDS[t.told] ?? t.told, t.incident ? ` (#${t.incident})` : ''),
    make('td', { colspan: 3 }, ...about));
}

/** All pages of a list of the log behind a position: what fits, the last of it. */
async function pages<Member extends string, One>(path: Member, since: number, glob: string, fits: (one: One) => boolean): Promise<[One[], number]> {
  let all: One[] = [], part: Logged<Member, One>;
  do {
    part = await ask<Logged<Member, One>>(`${path}?limit=10000&since=${since}&glob=${encodeURIComponent(glob)}`);
    all = all.concat((part[path] as One[]).filter(fits)).slice(-SHOWN);
    if (part.position === since) break;
    since = part.position;
  } while (part.position < part.last);
  return [all, since];
}

export const timeline: View = async (place, { told: well, alive }) => {
  const glob = make('input', { type: 'search', placeholder: 'glob, such as pump*', 'aria-label': 'Glob' });
  const channel = make('select', { 'aria-label': 'Channel' }, make('option', { value: '' }, 'all channels'), ...[...CHANNELS, OPERATORS].map(c => make('option', {}, c)));
  const from = make('input', { type: 'datetime-local' }), to = make('input', { type: 'datetime-local' });
  const body = make('tbody'), note = make('p', { class: 'quiet' });
  place.append(make('h1', {}, 'Timeline'), make('form', { class: 'filters', onsubmit: (e: SubmitEvent) => { e.preventDefault(); void again(); } }, glob, channel, make('label', {}, 'from', from), make('label', {}, 'to', to)),
    make('table', { class: 'events' }, make('thead', {}, make('tr', {}, ...['Time', 'Sensor', 'Event'].map(t => make('th', {}, t)), make('th', { class: 'seldom' }, 'Channel'), make('th', {}, 'Severity'), make('th', { class: 'seldom' }, 'Before and after'))), body), note);
  let end = (): void => {}, asked = 0, timer: ReturnType<typeof setInterval> | undefined, known = 0;
  const ns = (field: HTMLInputElement): number => Number(new Date(field.value)) * 1e6;
  const within = (e: { time: number }): boolean => (!from.value || e.time >= ns(from)) && (!to.value || e.time <= ns(to));
  const fits = (e: Event): boolean => channel.value !== OPERATORS && (!channel.value || e.channel === channel.value) && within(e);
  const operated = (t: Told): boolean => (!channel.value || channel.value === OPERATORS) && t.told !== 'acknowledged' && within(t); // those are events, too
  const add = (row: HTMLElement): void => { body.prepend(row); note.textContent = ''; while (body.rows.length > SHOWN) body.lastChild?.remove(); };

  /** What operators have told it since. */
  async function more(mine: number): Promise<void> {
    const [all, position] = await pages<'told', Told>('told', known, glob.value, operated);
    if (mine !== asked || !alive()) return;
    known = position;
    all.forEach(t => add(told(t)));
  }

  async function again(): Promise<void> {
    const mine = ++asked;
    end();
    clearInterval(timer);
    const status = await ask<Status>('status'), last = status.durability.events_last, logged = last !== undefined;
    let since = from.value || to.value ? 0 : Math.max(0, (last || 0) - 20 * SHOWN), all: Event[] = [], words: Told[] = [];
    if (logged) {
      [[all, since], [words, known]] = await Promise.all([pages<'events', Event>('events', since, glob.value, fits), pages<'told', Told>('told', since, glob.value, operated)]);
      note.textContent = all.length + words.length ? '' : 'No alert has been told yet.';
    } else {
      note.textContent = 'This daemon keeps no log of events (durability = none): what comes from now on is shown.';
    }
    if (mine !== asked || !alive()) return;
    const rows: [number, () => HTMLElement][] = [...all.map((e): [number, () => HTMLElement] => [e.position, () => alert(e)]), ...words.map((t): [number, () => HTMLElement] => [t.position, () => told(t)])];
    body.replaceChildren(...rows.sort((a, b) => b[0] - a[0]).slice(0, SHOWN).map(([, row]) => row()));
    const query = { what: 'events', glob: glob.value, ...(logged ? { since: String(since) } : {}) };
    end = stream(query, { alert: e => { if (fits(e)) add(alert(e)); },
      gap: g => body.prepend(make('tr', {}, make('td', { colspan: 6, class: 'quiet' }, `${g.gap.events} events were left out`))) }, well);
    if (logged) timer = setInterval(() => more(mine).catch(() => {}), AGAIN);
  }
  for (const filter of [glob, channel, from, to]) filter.addEventListener('change', () => again().catch(() => well(false)));
  await again();
  return () => { asked++; clearInterval(timer); end(); };
};
