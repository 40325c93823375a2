// What stands, the gravest first, and what to do about it.
import { ask, count, levels, make, primary, sentence, stream, time } from './tools.js';

const SHOWN = 200;

function card(a, act) {
  const canvas = make('canvas', { class: 'chart', role: 'img', 'aria-label': 'level before and after' });
  const done = make('span', { role: 'status' });
  const button = (text, path, body) => make('button', { onclick: async () => {
    try { done.textContent = (await ask(path, body)).text; act(); } catch (why) { done.textContent = why.message; }
  } }, text);
  const row = make('article', { class: `card ${a.level}${a.acknowledged ? ' known' : ''}` },
    make('p', {}, make('span', { class: 'badge' }, a.level), ' ', ...sentence(a)), canvas,
    make('div', { class: 'do' },
      ...(a.acknowledged ? ['acknowledged by ', a.by, ' at ', time(a.acknowledged), ' '] : [button('Acknowledge', 'ack', { sensor: a.sensor, number: a.number })]),
      button('Maintenance, 1 h', 'maintenance', { glob: primary(a.sensor), seconds: 3600 }), a.maintenance ? 'raised in maintenance ' : '', done));
  row.draw = () => levels(canvas, a);
  return row;
}

function nothing(status) {
  if (status.points.in === 0)
    return make('div', { class: 'empty' }, make('p', {}, 'Nothing has been sent to this daemon yet. Send something:'),
      make('pre', {}, "hankel feed recording.csv\necho 'boiler,site=a temperature=81.5' | nc -q 1 HOST 7411"));
  return make('div', { class: 'empty' }, `All is well: no alert stands. ${count(status.sensors.count)} sensors, ${count(status.points.in)} points so far.`);
}

export async function now(place, { told, alive }) {
  const title = make('h1'), list = make('div'), windows = make('div');
  let due = null, cards = [];
  place.append(title, list, windows);
  async function look() {
    const [alerts, status] = await Promise.all([ask(`alerts?limit=${SHOWN}`), ask('status')]);
    const open = alerts.standing - alerts.acknowledged;
    title.textContent = alerts.standing === 0 ? 'Nothing stands' : `${count(open)} to look at` + (alerts.acknowledged ? `, ${count(alerts.acknowledged)} acknowledged` : '');
    document.title = open ? `(${open}) hankeld` : 'hankeld';
    cards = alerts.alerts.map(a => card(a, look));
    list.replaceChildren(...(cards.length ? cards : [nothing(status)]));
    if (alerts.standing > cards.length) list.append(make('p', { class: 'quiet' }, `and ${count(alerts.standing - cards.length)} more`));
    windows.replaceChildren(...(status.maintenance.length ? [make('h2', {}, 'Maintenance')] : []), ...status.maintenance.map(w =>
      make('p', {}, `${w.match || '*'}: ${w.name || w.by || ''}${w.daily ? ', daily ' + w.daily : ''}${w.to ? ', until ' + w.to : ''}${w.now ? ', now ' : ' '}`,
        w.by ? make('button', { onclick: async () => { await ask('maintenance', { glob: w.match, end: true }).catch(() => {}); look(); } }, 'End') : '')));
    draw();
  }
  const draw = () => cards.forEach(c => c.isConnected && c.draw());
  // Many alerts that come together are one look.
  const soon = () => { due ??= setTimeout(() => { due = null; if (alive()) look().catch(() => told(false)); }, 300); };
  await look();
  const end = stream({ what: 'events' }, { alert: soon, gap: soon }, well => { told(well); if (well) soon(); });
  const minute = setInterval(soon, 60000);
  addEventListener('resize', draw);
  return () => { end(); clearTimeout(due); clearInterval(minute); removeEventListener('resize', draw); };
}
