// The machines of a cluster: how each is, who scores which partition, and how far behind.
import type { Cluster, Held, Machine } from './api';
import { ask, count, make, time } from './tools';
import type { Child, View } from './tools';

const ROWS = 256; // partitions that are shown, those furthest behind first
const BEHIND = 60; // s of lag that are too many

type Row = Held & { machine: string };

const tile = (what: string, value: string, bad = false): HTMLElement => make('div', { class: bad ? 'tile bad' : 'tile' }, make('b', {}, value), make('span', {}, what));
const table = (heads: string[], rows: [boolean, ...Child[]][]): HTMLElement => make('table', {}, make('thead', {}, make('tr', {}, ...heads.map(h => make('th', {}, h)))),
  make('tbody', {}, ...rows.map(([bad, ...cells]) => make('tr', bad ? { class: 'severe' } : {}, ...cells.map(c => make('td', {}, c))))));
const worst = (held: Held[]): number => held.reduce((most, h) => Math.max(most, h.lag_seconds), 0);
const well = (m: Machine): boolean => !m.away && m.says.state === 'connected' && (m.says.publishing?.state ?? 'connected') === 'connected';

/** What a machine is, in words. */
function state(m: Machine): string {
  const { says } = m, more = [...(says.leads ? ['sends alerts'] : []), ...(says.draining ? ['draining'] : [])];
  if (m.away) return `away for ${Math.round(m.silent)} s`;
  const broken = says.state !== 'connected' ? says : says.publishing && says.publishing.state !== 'connected' ? says.publishing : undefined;
  return broken ? `${broken.state}: ${broken.why}` : ['connected', ...more].join(', ');
}

function machine(m: Machine, here: string): [boolean, ...Child[]] {
  const { says } = m, points = (says.publishing?.points ?? 0) + says.points;
  return [!well(m), make('span', { class: 'badge' }, m.name, m.name === here ? ' (this one)' : ''), says.role, state(m), says.held ? String(m.has) : '', count(points),
    says.held ? `${worst(says.held)} s` : '', says.broker];
}

/** Of two machines that say that they have a partition, the one of the later epoch has it. */
function partitions(machines: Machine[]): Row[] {
  const by = new Map<number, Row>();
  for (const m of machines) {
    for (const h of m.says.held ?? []) if (!(by.get(h.partition)?.epoch! >= h.epoch)) by.set(h.partition, { ...h, machine: m.name });
  }
  return [...by.values()].sort((a, b) => b.lag_seconds - a.lag_seconds || a.partition - b.partition);
}

function show(c: Cluster): HTMLElement[] {
  const away = c.machines.filter(m => m.away).length, rows = partitions(c.machines), lag = worst(rows), unscored = c.unscored ?? [], gone = new Set(unscored);
  if (c.machines.length === 0) return [make('div', { class: 'empty' }, c.name ? 'This machine knows of no other yet; with Kafka machines do not tell each other what they have.' : 'This daemon is alone: its configuration has no [cluster].')];
  return [make('div', { class: 'tiles' }, tile('machines', count(c.machines.length - away)), tile('away', count(away), away > 0), tile('partitions', count(c.of)),
    tile('scored by none', c.unscored ? count(unscored.length) : 'not known', unscored.length > 0), tile('furthest behind', `${lag} s`, lag > BEHIND)),
  make('h2', {}, 'Machines'), table(['Machine', 'Role', 'State', 'Partitions', 'Points', 'Behind', 'Broker'], c.machines.map(m => machine(m, c.machine))),
  ...(unscored.length ? [make('p', { class: 'fault' }, `Scored by no machine: partitions ${unscored.slice(0, ROWS).join(', ')}. Their points wait at the broker.`)] : []),
  ...(rows.length ? [make('h2', {}, rows.length > ROWS ? `Partitions: the ${ROWS} that are furthest behind` : 'Partitions'),
    table(['Partition', 'Scored by', 'Since', 'Epoch', 'Next message', 'Behind'], rows.slice(0, ROWS).map(r => [r.lag_seconds > BEHIND || gone.has(r.partition), make('span', { class: 'badge' }, String(r.partition)), r.machine,
      time(Date.parse(r.since) * 1e6), String(r.epoch), count(r.next), `${r.lag_seconds} s`]))] : [])];
}

export const cluster: View = async (place, { told, alive }) => {
  async function look(): Promise<void> {
    const c = await ask<Cluster>('cluster');
    place.replaceChildren(make('h1', {}, c.name ? `Cluster ${c.name}` : 'Cluster'), ...show(c));
    told(true);
  }
  await look();
  const timer = setInterval(() => alive() && look().catch(() => told(false)), 2000);
  return () => clearInterval(timer);
};
