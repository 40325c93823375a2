// The frame of the page: which view is shown, whether the daemon is there, and who may look.
import { ask, make } from './tools.js';
import { now } from './now.js';
import { sensor } from './sensor.js';
import { wall } from './wall.js';
import { timeline } from './timeline.js';
import { health } from './health.js';

const views = { now, sensor, wall, timeline, health };
const view = document.getElementById('view'), link = document.getElementById('link');
let leave = () => {}, turn = 0, probe = null;

function told(well, text) {
  link.classList.toggle('bad', !well);
  const say = text || (well ? 'live' : 'no connection; trying again');
  if (link.textContent !== say) link.textContent = say; // a screen reader says it once
  clearTimeout(probe);
  probe = null;
  if (!well && !text) probe = setTimeout(look, 2000);
}

/** A stream does not say why it is refused: whoever is not known any more has to log in. */
async function look() {
  const mine = turn;
  try { await ask('status'); } catch (why) { if (why.status === 401 && mine === turn) { leave(); leave = () => {}; turn++; login(); } }
}

function login() {
  const field = make('input', { type: 'password', autocomplete: 'current-password', 'aria-label': 'Token', required: '' });
  const fault = make('p', { class: 'fault', role: 'alert' });
  const form = make('form', { onsubmit: async e => {
    e.preventDefault();
    try { await ask('login', { token: field.value }); show(); } catch (why) { fault.textContent = why.message; }
  } }, make('h1', {}, 'A token is needed here'), make('p', {}, 'hankel token makes one; it needs the scope subscribe, and admin to acknowledge.'),
    field, ' ', make('button', {}, 'Log in'), fault);
  view.replaceChildren(form);
  field.focus();
  told(false, 'not logged in');
}

async function show() {
  const mine = ++turn;
  leave();
  leave = () => {};
  const [name, ...rest] = location.hash.slice(1).split('/');
  const chosen = views[name] ? name : 'now';
  for (const a of document.querySelectorAll('nav a')) {
    if (a.hash === '#' + chosen) a.setAttribute('aria-current', 'page');
    else a.removeAttribute('aria-current');
  }
  const place = make('div');
  try {
    const end = await views[chosen](place, { told, name: decodeURIComponent(rest.join('/')), alive: () => mine === turn });
    if (mine !== turn) { end?.(); return; }
    leave = end || leave;
    view.replaceChildren(place);
    dispatchEvent(new Event('resize'));
  } catch (why) {
    if (mine !== turn) return;
    if (why.status === 401) { login(); return; }
    told(false, why.status ? 'refused' : undefined);
    view.replaceChildren(make('p', { class: 'fault' }, why.status ? why.message : 'The daemon does not answer. The page tries again every few seconds.'));
    if (why.status !== 403 && why.status !== 400) setTimeout(() => { if (mine === turn) show(); }, 3000);
  }
}

const field = document.getElementById('sensor');
let typed;
field.addEventListener('input', () => {
  clearTimeout(typed);
  typed = setTimeout(async () => {
    const found = await ask(`sensors?limit=20&glob=${encodeURIComponent('*' + field.value + '*')}`).catch(() => ({ sensors: [] }));
    document.getElementById('names').replaceChildren(...found.sensors.map(s => make('option', { value: s.name })));
  }, 150);
});
document.getElementById('find').addEventListener('submit', e => {
  e.preventDefault();
  if (field.value) location.hash = 'sensor/' + encodeURIComponent(field.value);
});
document.addEventListener('keydown', e => {
  if (e.target.matches('input, select, textarea') || e.ctrlKey || e.metaKey || e.altKey) return;
  const to = { n: 'now', w: 'wall', t: 'timeline', h: 'health' }[e.key];
  if (to) location.hash = to;
  if (e.key === '/') { e.preventDefault(); field.focus(); }
});
addEventListener('hashchange', show);
show();
