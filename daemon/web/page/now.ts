// What stands, the gravest first, and what to do about it; then what was lately.
import type { Alert, Alerts, Event, Incident, Incidents, Level, Logged, Look, MachineOfGroup, Status } from './api';
import { spark } from './chart';
import type { Spark } from './chart';
import { faults } from './faults';
import { ago, ask, count, fault, link, make, number, primary, sentence, stream, time, timed } from './tools';
import type { Child, View } from './tools';

const SHOWN = 200, LATELY = 8, WITHHELD = 20, CHARTS = 12, HOUR = 3600;
const GRAVE = ['', 'notice', 'warning', 'severe'];

/** Alerts that are dealt with together: those of an incident, of a machine, or a single one. */
interface Group {
  incident?: Incident;
  machine?: MachineOfGroup;
  alerts: Alert[];
  level: Level | '';
}

/** What stands of a group; sensor: whose values its chart shows. */
interface Card {
  row: HTMLElement;
  key: string;
  sensor: string;
  draw(look: Look | null): void;
}

interface Answered {
  text: string;
}
type Does = (text: string, title: string, what: () => Promise<string>) => HTMLButtonElement;

const graver = (a: Level | '', b: Level | ''): Level | '' => (GRAVE.indexOf(a) > GRAVE.indexOf(b) ? a : b);

/** What an incident says: one sensor's alert, or who, how many, which was first, which shows most. */
function about(incident: Incident, alerts: Alert[]): Child[] {
  const i = incident.about;
  if (i.count === 1 && alerts.length) return sentence(alerts[0]);
  const said = i.what ? [': ', ...timed(i.what.replace(/ at [-\d]+ [.:\d]+ UTC$/, ''))] : []; // its own time stands before that
  const shows = alerts.filter(a => primary(a.sensor) === i.strongest).sort((a, b) => b.severity - a.severity)[0];
  const first = i.sensors.find(s => s.sensor === i.first) ?? i.sensors[0], when = first?.instant ?? i.since;
  if (i.count === 1) return [link(i.first), `: alert${first ? ` (${first.channels.join(', ')})` : ''}`, ' at ', time(when), ', ', time(when, ago(when)), ...said];
  const who = i.node ? `${count(i.below)} of the ${count(i.of)} sensors of ${i.node}${i.count > i.below ? ` and ${count(i.count - i.below)} more` : ''}` : `${count(i.count)} sensors`;
  const ties = i.ties ? [' (or ', ...i.or.flatMap((s, k) => [...(k ? [', '] : []), link(s)]), i.ties > i.or.length ? ` or ${count(i.ties - i.or.length)} more)` : ')'] : [];
  return [make('b', {}, who), ' changed together; first ', link(i.first), ' at ', time(when), ', ', time(when, ago(when)), ...ties, '; strongest ', ...(shows ? sentence(shows) : [link(i.strongest), ...said])];
}

/** The number by which messages, the log and `hankel ack` call it. */
const numbered = (i: Incident): HTMLElement => make('span', { class: 'quiet', title: 'The number of the incident, as in messages' }, `#${i.about.id} `);

/** Its section of the configuration, if that has a name, and whether the budget had no message for it. */
function withheld({ told, about: { section } }: Incident): Child {
  if (told) return section ? make('span', { class: 'quiet', title: 'The section of the configuration that it belongs to' }, ` ${section}`) : '';
  return make('span', { class: 'quiet', title: 'No message of this incident was sent: the budget is off or went to graver incidents, or its sensors were reported lately. Receivers of alerts get its alerts.' }, `; withheld by the budget${section ? ` of ${section}` : ''}`);
}

/** The sensors of an incident in the order in which they began. */
function members(incident: Incident): Child {
  const { sensors, count: n } = incident.about;
  if (n < 2) return '';
  return make('details', {}, make('summary', {}, `${count(n)} sensors, in the order in which they began`),
    make('ol', {}, ...sensors.map(s => make('li', {}, link(s.sensor), ' ', time(s.raised), `, ${s.channels.join(', ')}`))), n > sensors.length ? `and ${count(n - sensors.length)} more` : '');
}

/** What the sensors of a machine say themselves, below what they say together. */
function parts(alerts: Alert[]): Child {
  return make('details', { open: '' }, make('summary', {}, alerts.length === 1 ? 'One of its sensors' : `${count(alerts.length)} of its sensors`), ...alerts.map(a => make('p', {}, ...sentence(a))));
}

/** Words for what somebody said of an incident. */
const SAID = { expected: 'said to be expected', false: 'said to be a false alarm' };

/** What to do about an incident beside its alerts: to say what it was, or to take that back. does(): makes a button. */
function words(incident: Incident, does: Does, besides: (word: string) => Promise<void>): Child[] {
  const say = (word: string, text: string, title: string): Child => does(text, title, async () => {
    const said = await ask<Answered>('feedback', { incident: incident.about.id, word });
    await besides(word);
    return said.text;
  });
  if (incident.feedback)
    return [make('span', { title: incident.feedback.text }, SAID[incident.feedback.kind], ' '), say('undo', 'Undo', 'Takes back what was said of it')];
  return [say('expected', 'Expected', 'It was to be expected: its sensors are silent for a week, unless they are graver'),
    say('false', 'False alarm', 'There was nothing: its sensors are silent for a week, unless they are graver')];
}

/** Makes buttons that say in `done` what came of it, and look again. */
const doing = (done: HTMLElement, act: () => void): Does => (text, title, what) => make('button', { title, onclick: async () => {
  try { done.textContent = await what(); act(); } catch (why) { done.textContent = fault(why).message; }
} }, text);

/** What identifies a group from one look to the next. */
const key = ({ incident, alerts: [lead] }: Group): string => (incident ? `incident ${incident.about.id}` : `${lead.sensor}:${lead.number}`);

/** made: incidents are made of alerts here, so that one of none gets one soon. done: says what came of its buttons. */
function card(group: Group, act: () => void, made: boolean, small: Spark, done: HTMLElement): Card {
  const { incident, alerts } = group, open = alerts.filter(a => !a.acknowledged), lead = alerts[0];
  const names = [...new Set(incident ? incident.about.sensors.map(s => s.sensor) : alerts.map(a => primary(a.sensor)))];
  const globs = incident?.about.node ? [incident.about.node + '*'] : names.slice(0, 20);
  const does = doing(done, act);
  const acknowledge = async (): Promise<string> => {
    let said = '';
    for (const a of open) said = (await ask<Answered>('ack', { sensor: a.sensor, number: a.number })).text;
    return open.length > 1 ? `${open.length} alerts are acknowledged` : said;
  };
  const maintain = async (): Promise<string> => { let said = ''; for (const glob of globs) said = (await ask<Answered>('maintenance', { glob, seconds: HOUR })).text; return said; };
  const known = alerts.find(a => a.acknowledged);
  const row = make('article', { class: `card ${group.level}${open.length ? '' : ' known'}` },
    make('p', {}, make('span', { class: 'badge' }, group.level), ' ', ...(incident ? [numbered(incident), ...about(incident, alerts), withheld(incident)] : sentence(lead))), ...(lead.travels ? [] : [small.root]), // its levels are positions
    make('div', {}, make('div', { class: 'do' },
      ...(open.length ? [does('Acknowledge', 'Somebody looks after it', acknowledge)] : ['acknowledged by ', known?.by ?? '', ' at ', known?.acknowledged ? time(known.acknowledged) : '', ' ']),
      ...(incident ? words(incident, does, async word => { if (word !== 'undo') await acknowledge(); })
        : open.length && !made ? [does('Expected', 'Acknowledges it, and marks what these sensors do in the next hour as maintenance', async () => { await maintain(); return acknowledge(); })] : []),
      does('Maintenance, 1 h', 'Marks what these sensors do in the next hour', maintain), alerts.some(a => a.maintenance) ? 'raised in maintenance ' : '', alerts.some(a => a.provisional) ? 'provisional: the window was not full yet ' : '', done), incident ? members(incident) : group.machine && alerts.length > 1 ? parts(alerts.slice(1)) : ''));
  return { row, key: key(group), sensor: primary(lead.sensor), draw: look => small.show(lead, look) };
}

/** A line of what is over: of an incident, one may still say what it was. */
function past(level: Level, text: Child[], incident: Incident | undefined, act: () => void, answer: (key: string) => HTMLElement): { row: HTMLElement; key: string } {
  const mine = incident ? `over ${incident.about.id}` : '', done = answer(mine);
  const row = make('li', { class: level }, make('span', { class: 'badge' }, level), ' ', ...(incident ? [numbered(incident)] : []), ...text, ...(incident ? [incident.feedback ? '; ' : ' ', make('span', { class: 'do' }, ...words(incident, doing(done, act), async () => {}), done)] : []));
  return { row, key: mine };
}

/** Alerts by the incidents, or machines, that they belong to, the gravest first. */
function grouped(alerts: Alert[], incidents: Incident[], machines: MachineOfGroup[]): Group[] {
  const of = new Map<string, Group>(), groups: Group[] = [];
  for (const i of incidents) {
    const group: Group = { incident: i, alerts: [], level: i.level };
    for (const s of i.about.sensors) of.set(s.sensor, group);
    groups.push(group);
  }
  for (const machine of machines.filter(m => !of.has(m.name))) {
    const group: Group = { machine, alerts: [], level: '' };
    for (const name of [machine.name, ...machine.sensors]) if (!of.has(name)) of.set(name, group);
    groups.push(group);
  }
  for (const a of alerts) {
    const group = of.get(primary(a.sensor)) ?? of.get(a.sensor);
    if (group) group.alerts[a.channel === 'group' ? 'unshift' : 'push'](a);
    else groups.push({ alerts: [a], level: a.level });
  }
  for (const g of groups) for (const a of g.alerts) g.level = graver(g.level, a.level);
  const rank = (g: Group): number => (g.alerts.some(a => !a.acknowledged) ? 1000 : 0) + (g.incident?.about.rank ?? Math.max(...g.alerts.map(a => a.severity)));
  return groups.sort((a, b) => rank(b) - rank(a));
}

/** Whether it knows nothing yet; after a restart it knows sensors, though no point has come. */
const isNew = (status: Status): boolean => status.points.in === 0 && status.sensors.count === 0;

function nothing(status: Status): HTMLElement {
  if (isNew(status))
    return make('div', { class: 'empty' }, make('p', {}, 'Nothing has been sent to this daemon yet. Send something:'),
      make('pre', {}, "hankel feed recording.csv\necho 'boiler,site=a temperature=81.5' | nc -q 1 HOST 7411"));
  const sensors = status.sensors.count - status.derived.sensors;
  return make('p', { class: 'quiet' }, `${count(sensors)} sensor${sensors === 1 ? '' : 's'}, ${count(status.points.in - status.derived.points)} points so far.`);
}

type Over = [Level, Child[], Incident?];
const over = (i: Incident): Over => [i.level, [...about(i, []), withheld(i)], i];

/** What the budget withheld of what is over, the gravest first. Without a budget nothing is reported, and all is what was lately. */
const silent = (status: Status, incidents: Incident[]): Incident[] => status.incidents.budget > 0 ? incidents.filter(i => !i.told).sort((a, b) => b.about.rank - a.about.rank).slice(0, WITHHELD) : [];

/** What is over: the last reported incidents, or alerts where none are made. */
async function lately(status: Status, incidents: Incident[] | null, stands: Set<string>): Promise<Over[]> {
  if (incidents) return incidents.filter(i => i.told || status.incidents.budget === 0).sort((a, b) => b.about.last - a.about.last).slice(0, LATELY).map(over);
  const last = status.durability.events_last;
  if (!last) return [];
  const got = await ask<Logged<'events', Event>>(`events?limit=1000&since=${Math.max(0, last - 200)}`).catch(() => ({ events: [] }));
  return got.events.filter(e => e.event === 'raised' && !stands.has(e.id)).slice(-LATELY).reverse().map(e => [e.level, sentence(e)]);
}

/** How many were withheld of the last day of the data, with those that are known. */
function withheldToday({ incidents: day }: Status, rows: HTMLElement[], opened: boolean): Child {
  if (day.budget === 0 || (!rows.length && !day.withheld_today)) return '';
  const many = `${count(day.told_today)} reported on the last day of the data, and ${count(day.withheld_today)} withheld by the budget of ${number(day.budget)} a day`;
  return make('details', { class: 'withheld', ...(opened ? { open: '' } : {}) }, make('summary', {}, many), make('p', { class: 'quiet' }, rows.length ? 'The gravest of those withheld last:' : 'They are still open, or over for long.'), make('ul', { class: 'lately' }, ...rows));
}

/** A window of maintenance that is open, or will be. */
function maintained(w: Status['maintenance'][0], act: () => void): HTMLElement {
  const end = async (): Promise<void> => { await ask('maintenance', { glob: w.match, end: true }).catch(() => {}); act(); };
  return make('p', {}, `${w.match || '*'}: `, w.by ? `begun by ${w.by}` : w.name ?? '', w.daily ? `, daily ${w.daily} UTC` : '', ...(w.to ? [', until ', time(Date.parse(w.to) * 1e6)] : []), w.now ? ', open now ' : ', not open now ',
    w.by ? make('button', { onclick: end }, 'End') : '');
}

export const now: View = async (place, { told, alive }) => {
  const title = make('h1'), wrong = make('div'), verdict = make('div', { class: 'verdict', role: 'status' }, title, wrong), list = make('div'), windows = make('div'), before = make('div');
  const looks = new Map<string, { at: number; look: Look | null }>(); // by sensor: what its device has, for the charts
  const sparks = new Map<string, Spark>(); // by key: a card that is made anew has the chart that it had
  const answers = new Map<string, HTMLElement>(); // by key: what came of the last press stays, though its card is made anew
  let due: ReturnType<typeof setTimeout> | undefined, cards: Card[] = [], asked = 0, drawn = 0, shown: { row: HTMLElement; key: string }[] = [];
  place.append(verdict, list, windows, before);

  function answer(mine: string): HTMLElement {
    const done = answers.get(mine) ?? make('span', { role: 'status' });
    answers.set(mine, done);
    return done;
  }
  async function charts(): Promise<void> {
    for (const c of cards.slice(0, CHARTS)) {
      const known = looks.get(c.sensor);
      if (!known || Date.now() - known.at > 20000) {
        const look = await ask<Look>('sensors/?scores=0&name=' + encodeURIComponent(c.sensor)).catch(() => null);
        if (!alive()) return;
        looks.set(c.sensor, { at: Date.now(), look });
        if (c.row.isConnected) c.draw(look);
      }
    }
  }
  const draw = (): void => cards.forEach(c => c.row.isConnected && c.draw(looks.get(c.sensor)?.look ?? null));
  /** Makes the cards, with the charts that they had; those of others end. */
  function deal(stand: Group[], made: boolean): void {
    const old = new Map(sparks);
    sparks.clear();
    cards = stand.map(g => {
      const mine = key(g), small = old.get(mine) ?? spark();
      old.delete(mine);
      sparks.set(mine, small);
      return card(g, look, made, small, answer(mine));
    });
    old.forEach(small => small.end());
  }
  function say(status: Status, open: Group[], known: number, level: Level | ''): void {
    const none = isNew(status), bad = faults(status);
    verdict.className = `verdict ${bad.length ? 'severe' : open.length ? level : none ? '' : 'well'}`;
    title.textContent = none ? 'No data yet' : open.length ? `${count(open.length)} to look at${known ? `, ${count(known)} acknowledged` : ''}` : known ? `Nothing new; ${count(known)} acknowledged` : bad.length ? 'No alert stands' : 'All is well';
    document.title = `${open.length ? `(${open.length}) ` : bad.length ? '(!) ' : ''}hankeld`;
    const lines = bad.map(text => `WRONG: ${text}`), before = [...wrong.children].map(line => line.textContent);
    if (lines.join('\n') !== before.join('\n')) wrong.replaceChildren(...lines.map(line => make('p', { class: 'fault' }, line))); // a screen reader says it once
  }
  async function look(): Promise<void> {
    const mine = ++asked;
    const [alerts, status, made] = await Promise.all([ask<Alerts>(`alerts?limit=${SHOWN}`), ask<Status>('status'), ask<Incidents>('incidents').then(made => (made.made ? made : null))]);
    if (mine < drawn) return; // what was asked for later is there already
    drawn = mine;
    const machines = status.groups.machines || status.cluster ? (await ask<{ groups: MachineOfGroup[] }>('groups?alert=true')).groups : [];
    if (mine < drawn) return;
    const groups = grouped(alerts.alerts, made?.incidents ?? [], machines), stand = groups.filter(g => g.alerts.length), open = stand.filter(g => g.alerts.some(a => !a.acknowledged));
    say(status, open, stand.length - open.length, open.reduce((level, g) => graver(level, g.level), '' as Level | ''));
    const opened = new Set(cards.filter(c => c.row.querySelector('details')?.open).map(c => c.key)), focused = document.activeElement;
    const held = shown.find(c => c.row.contains(focused))?.key, button = focused?.textContent;
    deal(stand, Boolean(made));
    list.replaceChildren(...(cards.length ? cards.map(c => c.row) : [nothing(status)]));
    if (alerts.standing > alerts.alerts.length) list.append(make('p', { class: 'quiet' }, `and ${count(alerts.standing - alerts.alerts.length)} alerts more`));
    windows.replaceChildren(...(status.maintenance.length ? [make('h2', {}, 'Maintenance')] : []), ...status.maintenance.map(w => maintained(w, look)));
    const still = groups.flatMap(g => (g.alerts.length || !g.incident ? [] : [g.incident]));
    const lines = await lately(status, made && [...still, ...made.over], new Set(alerts.alerts.map(a => `${a.sensor}:${a.number}`)));
    if (mine < drawn) return;
    const row = ([level, text, incident]: Over): { row: HTMLElement; key: string } => past(level, text, incident, look, answer);
    const rows = lines.map(row), rest = (made ? silent(status, [...still, ...made.over]) : []).map(over).map(row);
    const unfolded = before.querySelector<HTMLDetailsElement>('details.withheld')?.open ?? false;
    before.replaceChildren(...(rows.length ? [make('h2', {}, 'Lately'), make('ul', { class: 'lately' }, ...rows.map(r => r.row))] : []), made ? withheldToday(status, rest.map(r => r.row), unfolded) : '');
    shown = [...cards, ...rows, ...rest];
    for (const mine of answers.keys()) if (!shown.some(c => c.key === mine)) answers.delete(mine);
    for (const { row, key: of } of shown) { // what somebody has opened, or is about to press, stays
      const details = row.querySelector('details');
      if (details && opened.has(of)) details.open = true;
      if (held && held === of) [...row.querySelectorAll<HTMLElement>('button, summary, a')].find(b => b.textContent === button)?.focus();
    }
    draw();
    void charts();
  }
  // Many alerts that come together are one look.
  const soon = (): void => { due ??= setTimeout(() => { due = undefined; if (alive()) look().catch(() => told(false)); }, 300); };
  await look();
  const end = stream({ what: 'events,incidents' }, { alert: soon, incident: soon, gap: soon }, well => { told(well); if (well) soon(); });
  const minute = setInterval(soon, 20000), dark = matchMedia('(prefers-color-scheme: dark)');
  addEventListener('resize', draw);
  dark.addEventListener('change', draw);
  return () => { end(); clearTimeout(due); clearInterval(minute); removeEventListener('resize', draw); dark.removeEventListener('change', draw); sparks.forEach(small => small.end()); };
};
