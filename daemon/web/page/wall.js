// Every sensor a cell, coloured by its score, grouped by the first word of its name. Only scores that say something are sent.
import { ask, count, make, number, paint, colour, stream } from './tools.js';

const MOST = 200000;
const LEAST = 0.2; // scores below are calm
const FADES = 60000; // ms after which a score that was not repeated is calm again

const prefix = name => /^[^\s,#./_:-]*/.exec(name)[0].replace(/\d+$/, '');

async function names(say) {
  const all = [];
  for (let after = 0; after !== undefined && all.length < MOST;) {
    const part = await ask(`sensors?limit=10000&after=${after}`);
    for (const s of part.sensors) if (!s.derived) all.push(s.name);
    after = part.next;
    say(`${count(all.length)} of ${count(part.count)} sensors`);
  }
  const compare = new Intl.Collator('en', { numeric: true }).compare;
  return all.length < 20000 ? all.sort(compare) : all.sort();
}

export async function wall(place, { told, alive }) {
  const tip = make('p', { class: 'tip', role: 'status' }), canvas = make('canvas', { class: 'wall', tabindex: '0', role: 'img', 'aria-label': 'all sensors' });
  place.append(make('h1', {}, 'Wall'), tip, canvas);
  const cells = await names(text => { tip.textContent = text; });
  if (cells.length === 0) { canvas.remove(); place.append(make('div', { class: 'empty' }, 'There are no sensors yet. Send something: hankel feed recording.csv')); told(true); return undefined; }
  const at = new Map(cells.map((name, i) => [name, i])), score = new Float32Array(cells.length), heard = new Float64Array(cells.length), standing = new Uint8Array(cells.length);
  const groups = new Map();
  cells.forEach((name, i) => { const p = prefix(name); if (!groups.has(p)) groups.set(p, []); groups.get(p).push(i); });
  const place_of = new Int32Array(cells.length * 2);
  let side = 8, dirty = true, frame;
  const index = name => at.get(name) ?? at.get(name.replace(/#[a-z]+$/, ''));

  async function alerts() {
    const got = await ask('alerts?limit=10000');
    standing.fill(0);
    for (const a of got.alerts) { const i = index(a.sensor); if (i !== undefined) standing[i] = 1; }
    dirty = true;
  }

  function lay() {
    const width = canvas.parentElement.clientWidth - 2, header = groups.size > 1 && groups.size <= 60 ? 18 : 0;
    side = Math.max(3, Math.min(26, Math.floor(Math.sqrt(width * 700 / cells.length))));
    const columns = Math.max(1, Math.floor((width - 8) / side));
    let y = 4;
    for (const members of groups.values()) {
      y += header;
      members.forEach((cell, k) => { place_of[2 * cell] = 4 + k % columns * side; place_of[2 * cell + 1] = y + Math.floor(k / columns) * side; });
      y += Math.ceil(members.length / columns) * side + (header ? 4 : 0);
    }
    canvas.style.height = `${y + 4}px`;
    dirty = true;
  }

  function draw() {
    frame = requestAnimationFrame(draw);
    if (!dirty || !alive() || !canvas.isConnected) return;
    dirty = false;
    const [g] = paint(canvas), now = Date.now(), size = side > 4 ? side - 1 : side - .5;
    const calm = colour('cell'), severe = colour('severe'), warm = colour('warning');
    g.fillStyle = colour('quiet');
    g.font = '12px system-ui, sans-serif';
    if (groups.size > 1 && groups.size <= 60) for (const [name, members] of groups) g.fillText(`${name || 'others'} (${count(members.length)})`, 4, place_of[2 * members[0] + 1] - 5);
    g.fillStyle = calm;
    for (let i = 0; i < cells.length; i++) g.fillRect(place_of[2 * i], place_of[2 * i + 1], size, size);
    for (let i = 0; i < cells.length; i++) {
      const fresh = score[i] > 0 && now - heard[i] < FADES;
      if (!fresh && !standing[i]) continue;
      g.globalAlpha = standing[i] ? 1 : Math.max(.15, score[i]);
      g.fillStyle = standing[i] ? severe : warm;
      g.fillRect(place_of[2 * i], place_of[2 * i + 1], size, size);
    }
    g.globalAlpha = 1;
  }

  function under(e) {
    const box = canvas.getBoundingClientRect(), x = e.clientX - box.left, y = e.clientY - box.top;
    for (let i = 0; i < cells.length; i++)
      if (x >= place_of[2 * i] && x < place_of[2 * i] + side && y >= place_of[2 * i + 1] && y < place_of[2 * i + 1] + side) return i;
    return -1;
  }
  const say = i => { tip.textContent = i < 0 ? `${count(cells.length)} sensors; red: an alert stands; orange: the score, the stronger the higher` : `${cells[i]}${score[i] ? `: score ${number(score[i])}` : ''}${standing[i] ? ', an alert stands' : ''}`; };
  canvas.addEventListener('mousemove', e => say(under(e)));
  canvas.addEventListener('mouseleave', () => say(-1));
  canvas.addEventListener('click', e => { const i = under(e); if (i >= 0) location.hash = 'sensor/' + encodeURIComponent(cells[i]); });
  let chosen = -1;
  canvas.addEventListener('keydown', e => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[e.key];
    if (step) { chosen = Math.max(0, Math.min(cells.length - 1, chosen + step)); say(chosen); e.preventDefault(); }
    if (e.key === 'Enter' && chosen >= 0) location.hash = 'sensor/' + encodeURIComponent(cells[chosen]);
  });
  await alerts();
  let due = null;
  const soon = () => { due ??= setTimeout(() => { due = null; if (alive()) alerts().catch(() => {}); }, 500); };
  const end = stream({ what: `scores>=${LEAST},events` }, {
    '': r => { const i = index(r.sensor); if (i !== undefined) { score[i] = r.score; heard[i] = Date.now(); dirty = true; } },
    alert: soon, gap: soon,
  }, told);
  const fade = setInterval(() => { dirty = true; }, 5000);
  addEventListener('resize', lay);
  say(-1);
  frame = requestAnimationFrame(draw);
  return () => { end(); cancelAnimationFrame(frame); clearInterval(fade); clearTimeout(due); removeEventListener('resize', lay); };
}
