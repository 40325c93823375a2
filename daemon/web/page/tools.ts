// What all views use. Text goes into the page as text alone: a sensor may be named anything.
import type { Alert, Event, Nullable } from './api';
export { stream } from './stream';

/** What the frame of the page gives a view: where to say whether the daemon answers, whether the view is still shown, and the sensor's name. */
export interface Frame {
  told(well: boolean, text?: string): void;
  alive(): boolean;
  name: string;
}
/** Shows itself in a place; returns what ends it. */
export type View = (place: HTMLElement, frame: Frame) => Promise<(() => void) | void>;

export type Child = Node | string;
interface Attributes {
  [name: string]: unknown;
  onclick?: (e: MouseEvent) => void;
  onsubmit?: (e: SubmitEvent) => void;
}

/** An element: make('p', {class: 'quiet'}, 'text', child...). */
export function make<Tag extends keyof HTMLElementTagNameMap>(tag: Tag, attributes: Attributes = {}, ...children: Child[]): HTMLElementTagNameMap[Tag] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value as EventListener);
    else if (value !== undefined && value !== false) element.setAttribute(name, String(value));
  }
  element.append(...children);
  return element;
}

/** An entry of a legend: a swatch of a class or a colour, and what it stands for, which no end of a line parts. */
export function entry(swatch: { kind?: string; colour?: string }, ...text: Child[]): HTMLElement {
  const mark = make('i', { class: `swatch ${swatch.kind ?? ''}`.trim() });
  if (swatch.colour) mark.style.background = `var(--${swatch.colour})`;
  return make('span', { class: 'entry' }, mark, ...text);
}

/** What the daemon says against a request; status 0: it said nothing. */
export class Fault extends Error {
  constructor(message: string, readonly status: number) { super(message); }
}
export const fault = (why: unknown): Fault => (why instanceof Fault ? why : new Fault(why instanceof Error ? why.message : String(why), 0));

/** Asks the API. Throws a Fault with what the daemon says, or another error where it says nothing. */
export async function ask<Answer>(path: string, body?: object): Promise<Answer> {
  const how = body === undefined ? {} : { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) };
  const answer = await fetch('/api/v1/' + path, how);
  const said = await answer.json().catch(() => ({}));
  if (answer.ok) return said as Answer;
  throw new Fault(said.detail || `status ${answer.status}`, answer.status);
}

// Times of the API are ns: more than a double holds to the last digit, and as exact as anybody reads them.
const instant = (ns: number): Date => new Date(ns / 1e6);
const sameDay = (a: Date, b: Date): boolean => a.toDateString() === b.toDateString();

export function clock(ns: number, seconds = false): string {
  const at = instant(ns);
  const day: Intl.DateTimeFormatOptions = sameDay(at, new Date()) ? {} : { year: 'numeric', month: 'short', day: 'numeric' };
  return at.toLocaleString(undefined, { ...day, hour: '2-digit', minute: '2-digit', ...(seconds ? { second: '2-digit' } : {}) });
}

export function ago(ns: number): string {
  const s = Math.round(Date.now() / 1000 - ns / 1e9);
  const [n, unit]: [number, Intl.RelativeTimeFormatUnit] = Math.abs(s) < 90 ? [s, 'second'] : Math.abs(s) < 5400 ? [s / 60, 'minute'] : Math.abs(s) < 129600 ? [s / 3600, 'hour']
    : Math.abs(s) < 63072000 ? [s / 86400, 'day'] : [s / 31557600, 'year'];
  return new Intl.RelativeTimeFormat('en', { numeric: 'always' }).format(-Math.round(n), unit);
}

/** A time in the viewer's zone, with UTC on hover. */
export function time(ns: number, text = clock(ns)): HTMLTimeElement {
  const utc = instant(ns).toISOString();
  return make('time', { datetime: utc, title: utc.replace('T', ' ').replace('Z', ' UTC') }, text);
}

/** A sentence of the daemon, whose times are of UTC: as the viewer's. */
export const timed = (text: string): Child[] => text.split(/(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)?(?: UTC)?)/)
  .map((part, i) => { const ms = i % 2 ? Date.parse(part.replace(' UTC', '').replace(' ', 'T') + 'Z') : NaN; return Number.isNaN(ms) ? part : time(ms * 1e6, clock(ms * 1e6, true)); });

export function number(x: Nullable | undefined): string {
  return x === null || x === undefined ? '?' : Math.abs(x) >= 1e6 || (x !== 0 && Math.abs(x) < 1e-3) ? x.toExponential(3) : String(+x.toPrecision(4));
}

export const count = (n: number): string => Number(n).toLocaleString();
export const bytes = (n: number): string => n < 1e4 ? `${n} B` : n < 1e7 ? `${(n / 1e3).toFixed(0)} kB` : n < 1e10 ? `${(n / 1e6).toFixed(0)} MB` : `${(n / 1e9).toFixed(1)} GB`;
export const colour = (name: string): string => getComputedStyle(document.documentElement).getPropertyValue('--' + name).trim();
/** A companion's name ends with its algorithm; what people call it is the sensor's. */
export const primary = (name: string): string => name.replace(/#(ika|svd|graph|shift|novelty|limit)$/, '');
/** A narrow column breaks a name behind its separators, sooner than within a word. */
export const link = (name: string, text = name): HTMLAnchorElement =>
  make('a', { href: '#sensor/' + encodeURIComponent(name) }, ...(text.match(/[^/.:#]*[/.:#]|[^/.:#]+$/g) ?? []).flatMap((part, i) => i > 0 ? [make('wbr', {}), part] : [part]));

/** A day as people call it, or the time of one that is today. */
const day = (ns: number): string => sameDay(instant(ns), new Date()) ? clock(ns)
  : instant(ns).toLocaleDateString(undefined, { day: 'numeric', month: 'long', ...(instant(ns).getFullYear() === new Date().getFullYear() ? {} : { year: 'numeric' }) });

/** What is new, of an alert of the channel novelty. */
function novelty(a: Alert | Event): Child[] {
  const n = a.novelty;
  if (!n) return ['does what it has not done before: ', number(a.after), ', where ', number(a.before), ' was expected'];
  const all = `${count(n.compared)} points`, after = a.after ?? NaN;
  if (n.kind === 'shape') return [`shape not seen in ${all}`];
  if (n.kind === 'context') return [`no such state in ${all}: mean of the last ${n.reach} is ${number(a.after)}, expected ${number(a.before)}`];
  return [`value ${number(a.after)} ${after > n.high ? 'is the highest' : after < n.low ? 'is the lowest' : 'was not seen'} in ${all}`];
}

/** When it was like that before, or nearest to it. */
function before(a: Alert | Event): Child[] {
  const at = a.similar_from ?? a.novelty?.nearest;
  if (!at) return [];
  return [a.similar_from ? '; like ' : a.novelty?.kind === 'value' ? `; nearest ${number(a.before)} at ` : '; nearest at ', time(at, day(at))];
}

/** When a limit is reached, from now on: what its alert says. */
function ahead(a: Alert | Event, { limit, slope, earliest, reached, latest }: NonNullable<Alert['limit']>): Child[] {
  const now = Date.now() * 1e6, falls = slope < 0;
  const left = (ns: number): number => Math.max(ns - now, 0) / 3.6e12, longest = left(latest ?? earliest);
  const [unit, name]: [number, string] = longest < 2 ? [1 / 60, 'min'] : longest < 72 ? [1, 'h'] : [24, 'days'];
  const first = Math.floor(left(earliest) / unit), last = Math.ceil(longest / unit);
  const range = longest === 0 ? 'by now' : latest === null ? `in ${first} ${name} or later` : last <= first + 1 ? `in ${last} ${name}` : `in ${first} to ${last} ${name}`;
  const rate = ['; now ', number(a.after), falls ? ', falls by ' : ', grows by ', number(Math.abs(slope) * 3600), ' an hour'];
  return reached <= a.time ? ['has reached its limit ', number(limit), ...rate] : [falls ? 'falls to ' : 'reaches ', number(limit), ' ', range, ', about ', time(reached), ...rate];
}

/** Where a change on a line began, when, and how fast it travels. */
function travels(a: Alert | Event): Child[] {
  const speed = a.spread_after ?? NaN, near = a.by && !('acknowledged' in a) ? [', near ', link(a.by), ','] : [];
  return ['a change began at position ', number(a.after), ...near, ' at ', time(a.instant, clock(a.instant, true)), ', ', time(a.instant, ago(a.instant)), ', and travels at ',
    number(Math.abs(speed)), ' a second', speed < 0 ? ' towards lower positions' : ''];
}

/** A time, and how long ago that is. */
export const when = (ns: number): Child[] => [time(ns), ', ', time(ns, ago(ns))];

/** What an alert says, in a sentence of nodes. */
export function sentence(a: Alert | Event): Child[] {
  const about: Child[] = [link(primary(a.sensor)), ': '];
  const blame = a.secondary ? ['; secondary: ', ...(a.by && !('acknowledged' in a) ? [link(a.by)] : ['another sensor of its field']), ' is to blame'] : [];
  if (a.channel === 'novelty') about.push(...novelty(a));
  else if (a.limit) return [...about, ...ahead(a, a.limit)];
  else if (a.travels) return [...about, ...travels(a)];
  else if (a.channel === 'group') about.push('its sensors, taken together, behave differently');
  else if (a.channel === 'score' || a.channel === 'change')
    about.push(a.channel === 'score' ? 'looks unlike before' : 'behaves differently', ': level ', number(a.before), ' before, ', number(a.after), ' after');
  else about.push('level went from ', number(a.before), ' to ', number(a.after));
  return [...about, '; since ', ...when(a.instant), ...before(a), ...blame];
}
