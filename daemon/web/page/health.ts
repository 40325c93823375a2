// How the daemon does.
import type { Status } from './api';
import { faults } from './faults';
import { ask, bytes, count, make, time } from './tools';
import type { View } from './tools';

const LEGS: Record<string, string> = { gather: 'gathered', wait: 'waits for the device', score: 'is scored', publish: 'is published', whole: 'all of it' };
const tile = (what: string, value: string, bad = false): HTMLElement => make('div', { class: bad ? 'tile bad' : 'tile' }, make('b', {}, value), make('span', {}, what));
const duration = (us: number): string => us < 1000 ? `${us.toFixed(0)} us` : us < 1e6 ? `${(us / 1e3).toFixed(1)} ms` : `${(us / 1e6).toFixed(2)} s`;

/** A table of what the daemon talks to by itself; nothing where there is none. Rows begin with whether something is wrong. */
const table = (title: string, heads: string[], rows: [boolean, ...string[]][]): HTMLElement[] => rows.length === 0 ? [] : [make('h2', {}, title), make('table', {}, make('thead', {}, make('tr', {}, ...heads.map(h => make('th', {}, h)))),
  make('tbody', {}, ...rows.map(([bad, ...cells]) => make('tr', bad ? { class: 'severe' } : {}, ...cells.map((c, i) => make('td', {}, i === 1 ? make('span', { class: 'badge' }, c) : c))))))];
const receivers = (s: Status): HTMLElement[] => table('Receivers of alerts', ['Name', 'State', 'Told', 'Waiting', 'Given up', 'Last answer'],
  s.notify.map(r => [r.state !== 'ok', `${r.name} (${r.type})`, r.state, count(r.events), count(r.waiting), count(r.given_up), r.answer || '']));
const brokers = (s: Status): HTMLElement[] => table('Brokers', ['Name', 'State', 'Messages', 'Why'],
  s.mqtt.map(b => [b.state !== 'connected', `${b.name} (${b.way})`, b.state, count(b.messages), b.why || '']));

export const health: View = async (place, { told, alive }) => {
  let before: Status | null = null, at = 0;
  async function look(): Promise<void> {
    const s = await ask<Status>('status'), now = performance.now(), seconds = (now - at) / 1000;
    const fed = s.points.in - s.derived.points, rate = before ? (fed - before.points.in + before.derived.points) / seconds : null;
    before = s;
    at = now;
    const lost = s.udp.lost_points, disk = s.durability, device = s.device;
    const journal = disk.shards.reduce((n, one) => n + (one.journal_bytes || 0), 0);
    place.replaceChildren(make('h1', {}, 'Health'), ...faults(s).map(text => make('p', { class: 'fault' }, `WRONG: ${text}`)), make('div', { class: 'tiles' },
      tile('points a second', rate === null ? '...' : count(Math.round(rate))), tile('points fed', count(fed)), tile('scores', count(s.points.scored)),
      tile('waiting for results', count(s.points.pending)), tile('dropped', count(s.points.dropped), s.points.dropped > 0), tile('late', count(s.points.late - s.derived.late), !!s.points.late_sensor),
      tile('lost on the way (UDP)', count(lost), lost > 0), tile(s.derived.sensors ? `sensors (${count(s.sensors.count)} series)` : 'sensors', count(s.sensors.count - s.derived.sensors)),
      tile(`device (${s.backend})`, device.state === 'lost' ? 'lost' : 'ok', device.state === 'lost'),
      tile(`durability: ${disk.mode}`, disk.state, disk.state !== 'ok' && disk.state !== 'none'),
      tile('journal', bytes(journal)), tile('commit, 99 %', duration(disk.commit_p99_us)),
      tile('connections (without HTTP)', count(s.connections.open)), tile('subscribers', count(s.subscribers.count)),
      tile('wait for subscribers', bytes(s.subscribers.queued_bytes)), tile('results left out', count(s.subscribers.gap_results), s.subscribers.gap_results > 0),
      tile('scoring', s.batches.stalled_s ? `stalled, ${s.batches.stalled_s} s` : 'runs', s.batches.stalled_s > 0), tile('configuration', s.configuration.state, s.configuration.state === 'refused')),
      make('h2', {}, 'Where the time of a point goes'), make('table', {}, make('thead', {}, make('tr', {}, make('th', {}, 'Part'), ...['50 %', '99 %', '99.9 %'].map(t => make('th', { class: 'n' }, t)))),
        make('tbody', {}, ...Object.entries(LEGS).map(([leg, text]) => make('tr', {}, make('th', {}, text), ...['p50_us', 'p99_us', 'p999_us'].map(q => make('td', { class: 'n' }, duration(s.latency[leg][q]))))))),
      ...receivers(s), ...brokers(s),
      make('p', { class: 'quiet' }, `hankeld ${s.version}, up since `, time((Date.now() - 1000 * s.uptime_s) * 1e6), `, ${s.threads} threads. Latency counts points that somebody subscribes to.`));
    told(true);
  }
  await look();
  const timer = setInterval(() => alive() && look().catch(() => told(false)), 2000);
  return () => clearInterval(timer);
};
