// What was told, the newest first, by channel and name.
import { ask, clock, make, number, primary, link, stream, time } from './tools.js';

const SHOWN = 500;
const CHANNELS = ['score', 'change', 'shift', 'group', 'novelty'];

function row(e) {
  const levels = e.event === 'acknowledged' ? `by ${e.by}` : `${number(e.before)} to ${number(e.after)}`;
  return make('tr', {}, make('td', {}, time(e.time, clock(e.time, true))), make('td', {}, link(primary(e.sensor))), make('td', {}, e.event), make('td', { class: 'seldom' }, e.channel),
    make('td', { class: `${e.level}` }, make('span', { class: 'badge' }, e.level || '')), make('td', { class: 'seldom' }, levels));
}

export async function timeline(place, { told, alive }) {
  const glob = make('input', { type: 'search', placeholder: 'glob, such as pump*', 'aria-label': 'Glob' });
  const channel = make('select', { 'aria-label': 'Channel' }, make('option', { value: '' }, 'all channels'), ...CHANNELS.map(c => make('option', {}, c)));
  const body = make('tbody'), note = make('p', { class: 'quiet' });
  place.append(make('h1', {}, 'Timeline'), make('form', { class: 'filters', onsubmit: e => { e.preventDefault(); again(); } }, glob, channel),
    make('table', {}, make('thead', {}, make('tr', {}, ...['Time', 'Sensor', 'Event'].map(t => make('th', {}, t)), make('th', { class: 'seldom' }, 'Channel'), make('th', {}, 'Level'), make('th', { class: 'seldom' }, 'Levels'))), body), note);
  let end = () => {}, asked = 0;
  const fits = e => !channel.value || e.channel === channel.value;

  async function again() {
    const mine = ++asked;
    end();
    const status = await ask('status');
    let since = Math.max(0, (status.durability.events_last || 0) - 20 * SHOWN), all = [];
    if (status.durability.events_last === undefined) {
      note.textContent = 'This daemon keeps no log of events (durability = none): what comes from now on is shown.';
    } else {
      for (let part; !part || part.position < part.last; since = part.position) {
        part = await ask(`events?limit=10000&since=${since}&glob=${encodeURIComponent(glob.value)}`);
        all = all.concat(part.events.filter(fits)).slice(-SHOWN);
        if (part.position === since) break;
      }
      note.textContent = all.length ? '' : 'No alert has been told yet.';
    }
    if (mine !== asked || !alive()) return;
    body.replaceChildren(...all.reverse().map(row));
    const query = { what: 'events', glob: glob.value, ...(channel.value ? { channel: channel.value } : {}), ...(status.durability.events_last !== undefined ? { since } : {}) };
    end = stream(query, { alert: e => { body.prepend(row(e)); note.textContent = ''; while (body.rows.length > SHOWN) body.lastChild.remove(); },
      gap: g => body.prepend(make('tr', {}, make('td', { colspan: 6, class: 'quiet' }, `${g.gap.events} events were left out`))) }, told);
  }
  glob.addEventListener('change', again);
  channel.addEventListener('change', again);
  await again();
  return () => { asked++; end(); };
}
