// The frame of the page: which view is shown, whether the daemon is there, and who may look.
import type { Sensors, Status } from './api';
import { ask, fault, make } from './tools';
import type { View } from './tools';
import { now } from './now';
import { sensor } from './sensor';
import { lines } from './lines';
import { cameras } from './cameras';
import { wall } from './wall';
import { timeline } from './timeline';
import { health } from './health';
import { cluster } from './cluster';

const views: Record<string, View> = { now, sensor, wall, timeline, lines, cameras, cluster, health };
const here = <Kind extends HTMLElement>(id: string): Kind => document.getElementById(id) as Kind; // index.html has it
const view = here('view'), link = here('link');
let leave: () => void = () => {}, turn = 0, probe: ReturnType<typeof setTimeout> | undefined;

function told(well: boolean, text?: string): void {
  link.classList.toggle('bad', !well);
  const say = text || (well ? 'live' : 'no connection; trying again');
  if (link.textContent !== say) link.textContent = say; // a screen reader says it once
  clearTimeout(probe);
  probe = undefined;
  if (!well && !text) probe = setTimeout(look, 2000);
}

/** A stream does not say why it is refused: whoever is not known any more has to log in. */
/** The views of lines, cameras and a cluster are offered where there are some; lines may be at another machine. */
async function offer(): Promise<void> {
  const { models, input, cluster: of } = await ask<Status>('status');
  here('cameras').hidden = input.pictures === 0;
  here('cluster').hidden = !of;
  here('lines').hidden = models.lines === 0 && !(of && (await ask<{ models: unknown[] }>('lines?limit=1')).models.length);
}

async function look(): Promise<void> {
  const mine = turn;
  try { await ask('status'); } catch (why) { if (fault(why).status === 401 && mine === turn) { leave(); leave = () => {}; turn++; login(); } }
}

function login(): void {
  const field = make('input', { type: 'password', autocomplete: 'current-password', 'aria-label': 'Token', required: '' });
  const wrong = make('p', { class: 'fault', role: 'alert' });
  const form = make('form', { onsubmit: async (e: SubmitEvent) => {
    e.preventDefault();
    try { await ask('login', { token: field.value }); await show(); } catch (why) { wrong.textContent = fault(why).message; }
  } }, make('h1', {}, 'A token is needed here'), make('p', {}, 'hankel token makes one; it needs the scope subscribe, and admin to acknowledge.'),
    field, ' ', make('button', {}, 'Log in'), wrong);
  view.replaceChildren(form);
  field.focus();
  told(false, 'not logged in');
}

async function show(): Promise<void> {
  const mine = ++turn;
  leave();
  leave = () => {};
  const [name, ...rest] = location.hash.slice(1).split('/');
  const chosen = views[name] ? name : 'now';
  for (const a of document.querySelectorAll<HTMLAnchorElement>('nav a')) {
    if (a.hash === '#' + chosen) a.setAttribute('aria-current', 'page');
    else a.removeAttribute('aria-current');
  }
  const place = make('div');
  try {
    const end = await views[chosen](place, { told, name: decodeURIComponent(rest.join('/')), alive: () => mine === turn });
    if (mine !== turn) { end?.(); return; }
    leave = end || leave;
    view.replaceChildren(place);
    void offer().catch(() => {}); // the view has said whether the daemon answers
    dispatchEvent(new Event('resize'));
  } catch (thrown) {
    if (mine !== turn) return;
    const why = fault(thrown);
    if (why.status === 401) { login(); return; }
    told(false, why.status ? 'refused' : undefined);
    view.replaceChildren(make('p', { class: 'fault' }, why.status ? why.message : 'The daemon does not answer. The page tries again every few seconds.'));
    if (why.status !== 403 && why.status !== 400) setTimeout(() => { if (mine === turn) show(); }, 3000);
  }
}

const field = here<HTMLInputElement>('sensor');
let typed: ReturnType<typeof setTimeout> | undefined;
field.addEventListener('input', () => {
  clearTimeout(typed);
  typed = setTimeout(async () => {
    const found = await ask<Pick<Sensors, 'sensors'>>(`sensors?limit=20&glob=${encodeURIComponent('*' + field.value + '*')}`).catch(() => ({ sensors: [] }));
    here('names').replaceChildren(...found.sensors.map(s => make('option', { value: s.name })));
  }, 150);
});
here('find').addEventListener('submit', e => {
  e.preventDefault();
  if (field.value) location.hash = 'sensor/' + encodeURIComponent(field.value);
});
document.addEventListener('keydown', e => {
  if ((e.target as Element).matches('input, select, textarea') || e.ctrlKey || e.metaKey || e.altKey) return;
  const keys: Record<string, string> = { n: 'now', w: 'wall', t: 'timeline', l: 'lines', c: 'cameras', m: 'cluster', h: 'health' }, to = keys[e.key];
  if (to) location.hash = to;
  if (e.key === '/') { e.preventDefault(); field.focus(); }
});
addEventListener('hashchange', show);
show();
