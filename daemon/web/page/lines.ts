// Lines and networks of pipes: what the model has, along a line, what its sensors read, by what they depart from it, and where a leak would be.
import type { Line, LineSensor, Model } from './api';
import { profile, residuals } from './profile';
import { ask, count, entry, link, make, number } from './tools';
import type { Child, View } from './tools';

const EVERY = 2000; // ms

const km = (m: number | undefined): string => `${number((m ?? 0) / 1000)} km`;
const hash = (model: string, line: number): string => `lines/${line}/${encodeURIComponent(model)}`;
/** Networks and matrices have no points along a line: their sensors are listed. */
const listed = (line: Line): boolean => Boolean(line.network ?? line.matrix);
const unit = (line: Line, s: LineSensor): string => line.units[s.kind] ?? '';
const level = (line: Line): string => (line.units.temperature ? `temperature, ${line.units.temperature}` : `pressure, ${line.units.pressure}`);

/** In multiples of the mean error. */
const errors = (s: LineSensor): number => Math.abs(s.departs ?? 0) / (s.error || Infinity);
const where = (s: LineSensor): string => (s.node === undefined ? km(s.place) : s.to === undefined ? s.node : `${s.node} to ${s.to}`);

/** What the line does, in a sentence. */
function verdict(line: Line): Child[] {
  const c = line.cause, share = `${Math.round((c?.share ?? 0) * 100)} %`;
  if (!line.running) return ['The model does not run: it waits until all boundaries have a value, or its equations had no solution. The log says why.'];
  if (c?.kind === 'leak' && c.nodes) return [make('b', { class: 'after' }, `A leak of about ${number(c.size)} ${line.units.flow} at or near ${c.nodes[0]?.node ?? ''}`), ` would explain ${share} of what the checks depart by${(c.near ?? 1) > 1 ? `; at ${count((c.near ?? 1) - 1)} other nodes it would explain about as much` : ''}.`];
  if (c?.kind === 'leak') return [make('b', { class: 'after' }, `A leak of about ${number(c.size)} ${line.units.flow} at ${km(c.place)}`), ` (${km(c.from)} to ${km(c.to)}) would explain ${share} of what the checks depart by.`];
  const s = line.sensors.find(one => one.name === c?.sensor);
  if (c && s) return [make('b', { class: 'after' }, s.name), ` alone, reading ${number(Math.abs(c.size))} ${unit(line, s)} too ${c.size > 0 ? 'much' : 'little'}, would explain ${share} of what the checks depart by.`];
  const most = Math.max(0, ...line.sensors.map(errors));
  return [most >= 2 ? `Checks depart from the model, but ${line.matrix ? 'not as by one of them alone' : 'neither as by a leak nor as by one sensor'}.` : 'No check departs from the model.'];
}

function row(line: Line, s: LineSensor): HTMLElement {
  const cell = (text: string, kind = 'n'): HTMLElement => make('td', { class: kind }, text), departs = s.departs ?? null;
  return make('tr', {}, make('td', {}, link(s.role === 'check' ? s.name + '#model' : s.name, s.name)), make('td', { class: 'seldom' }, s.role), cell(where(s), listed(line) ? 'seldom' : 'n seldom'),
    cell(`${number(s.value)} ${unit(line, s)}`), cell(number(s.model), 'n seldom'), cell(departs === null ? '' : `${number(departs)} (${number(errors(s))})`), ...(listed(line) ? [make('td', { class: 'seldom' }, bar(line, s))] : []),
    cell(typeof s.explained === 'number' ? (s.explained > 0 ? `${(100 * s.explained).toFixed(1)} %` : 'none') : ''));
}

/** Where sensors are listed: how large a departure is beside the others. */
function bar(line: Line, s: LineSensor): Child {
  if (s.role !== 'check') return '';
  const share = 100 * errors(s) / Math.max(3, ...line.sensors.map(errors)), is = make('i', { class: 'departs' });
  is.style.width = `${share.toFixed(1)}%`;
  is.style.background = `var(--${s.kind === 'flow' ? 'after' : 'accent'})`;
  return is;
}

const heads = (line: Line): [string, string][] => [['Sensor', ''], ['Role', 'seldom'], line.matrix ? ['At', 'seldom'] : line.network ? ['Node', 'seldom'] : ['Place', 'n seldom'], ['Reads', 'n'], ['Model', 'n seldom'], ['Departs (mean errors)', 'n'], ...(listed(line) ? [['', 'seldom']] as [string, string][] : []), ['Explained', 'n']];
const head = (titles: [string, string][]): HTMLElement => make('thead', {}, make('tr', {}, ...titles.map(([text, kind]) => make('th', kind ? { class: kind } : {}, text))));
/** Along a line; else the checks that depart most come first. */
const sensors = (line: Line): HTMLElement => make('table', {}, head(heads(line)),
  make('tbody', {}, ...[...line.sensors].sort(listed(line) ? (a, b) => errors(b) - errors(a) : (a, b) => (a.place ?? 0) - (b.place ?? 0)).map(s => row(line, s))));

/** Of a network: where a leak may be. */
const nodes = (line: Line): HTMLElement => make('div', {}, ...(line.cause?.nodes?.length ? [make('h2', {}, 'Where a leak may be'),
  make('table', { class: 'nodes' }, head([['Node', ''], ['Explains', 'n'], [`Leak, ${line.units.flow}`, 'n']]), make('tbody', {}, ...line.cause.nodes.map(n => make('tr', {},
    make('td', {}, n.node), make('td', { class: 'n' }, `${(100 * n.share).toFixed(1)} %`), make('td', { class: 'n' }, number(n.size))))))] : []));

/** A list to choose from; nothing where there is one only. */
function choice(label: string, names: string[], chosen: number, to: (i: number) => string): Child {
  if (names.length < 2) return '';
  const select = make('select', { 'aria-label': label, onchange: () => { location.hash = to(select.selectedIndex); } }, ...names.map((n, i) => make('option', i === chosen ? { selected: '' } : {}, n)));
  return make('label', {}, label + ' ', select);
}

export const lines: View = async (place, { told, name, alive }) => {
  const [, number_, wanted] = /^(?:(\d+)\/)?(.*)$/s.exec(name) ?? [], at = Number(number_ ?? 0);
  const { models } = await ask<{ models: Model[] }>(`lines?line=${at}`);
  const chosen = Math.max(0, models.findIndex(m => m.name === wanted));
  told(true);
  if (models.length === 0) {
    place.append(make('h1', {}, 'Lines'), make('div', { class: 'empty' }, make('p', {}, at > 0 ? 'There is no such line.' : 'No model of a line or network of pipes is here. A [field] with operator = model makes one: see hankeld-model(7).')));
    return undefined;
  }
  const whole = profile(), rest = residuals(), say = make('p', { class: 'compare', role: 'status' }), list = make('div'), likely = make('div'), about = make('p', { class: 'quiet' });
  let model = models[chosen];
  place.append(make('h1', {}, model.line.name || model.section), make('div', { class: 'filters' },
    choice('Model', models.map(m => m.name), chosen, i => hash(models[i].name, 0)), choice('Line', model.lines, at, i => hash(model.name, i))),
    say, ...(listed(model.line) ? [make('h2', {}, 'Sensors, those that depart most from the model first'), list, likely, about] : [whole.root, make('p', { class: 'quiet legend' }, entry({ colour: 'accent' }, level(model.line)), entry({ colour: 'after' }, `flow, ${model.line.units.flow}`), 'lines: the model, dots: sensors'),
      make('h2', {}, 'Departures from the model, in mean errors'), rest.root, make('h2', {}, 'Sensors'), list, about]));
  function draw(): void {
    const { line } = model;
    say.replaceChildren(make('span', {}, ...verdict(line)));
    if (!listed(line)) {
      whole.draw(line);
      rest.draw(line);
    }
    list.replaceChildren(sensors(line));
    likely.replaceChildren(nodes(line));
    about.textContent = line.matrix ? `${count(line.matrix.unknowns)} unknowns. Departures are means of about the last 60 rows.` : `${line.network ? `${count(line.network.nodes)} nodes, ${count(line.network.pipes)} pipes, ` : ''}${km(line.length)}; the ${line.units.temperature ? 'loss of heat' : 'friction'} found is ${number(line.friction)} times that of the file. Departures are means of about the last 60 rows; places and sizes are estimates for a steady ${line.network ? 'network' : 'line'}.${model.count > model.lines.length ? ` ${count(model.count)} lines; #${hash(model.name, 0)} takes any number.` : ''}`;
  }
  async function again(): Promise<void> {
    const now = await ask<{ models: Model[] }>(`lines?line=${at}&glob=${encodeURIComponent(model.name.replace(/[*?]/g, '?'))}`);
    model = now.models.find(m => m.name === model.name) ?? model;
    draw();
    told(true);
  }
  const soon = (): void => { requestAnimationFrame(() => alive() && draw()); };
  const timer = setInterval(() => alive() && again().catch(() => told(false)), EVERY);
  const dark = matchMedia('(prefers-color-scheme: dark)');
  soon();
  addEventListener('resize', soon);
  dark.addEventListener('change', soon);
  return () => { clearInterval(timer); removeEventListener('resize', soon); dark.removeEventListener('change', soon); whole.end(); rest.end(); };
};
