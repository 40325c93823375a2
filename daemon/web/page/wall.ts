// Every sensor a cell, coloured by its score, grouped by the beginning of its name. Only scores that say something are sent.
// Cells are written as pixels, those alone that have changed: 100,000 of them are no work for a frame.
import type { Alerts, Level, Sensors } from './api';
import type { Answer, Question } from './scores';
import { ask, count, entry, make, number, colour } from './tools';
import type { Frame, View } from './tools';

const MOST = 200000; // cells; of more sensors a glob says which
const LEAST = 0.2; // scores below are calm
const FADES = 60000; // ms after which a score that was not repeated is calm again
const LABELS = 60; // groups, above which they have no names
const LABEL = 20; // px
const LEVELS: Level[] = ['severe', 'warning', 'notice'];

type Rgb = ArrayLike<number>;

/** Sensors that are shown; cut: there are more. */
interface Cells {
  cells: string[];
  cut: boolean;
  of: number;
  away: string[]; // machines of a cluster that did not answer
}

/** What cells stand together by: plant1/pump7 by `plant1`, pump7,site=a by `pump`. */
const prefix = (name: string): string => name.includes('/') ? name.slice(0, name.indexOf('/')) : name.replace(/[\s,#._:-].*/s, '').replace(/\d+$/, '');

async function names(glob: string, say: (text: string) => void): Promise<Cells> {
  const all: string[] = [];
  let of = 0, cut = false, away: string[] = [];
  for (let after: number | string | undefined = 0; after !== undefined && all.length < MOST;) {
    const part: Sensors = await ask<Sensors>(`sensors?limit=10000&after=${encodeURIComponent(after)}&glob=${encodeURIComponent(glob)}`);
    for (const s of part.sensors) if (!s.derived) all.push(s.name);
    after = part.next;
    of = part.count;
    say(`${count(all.length)} of ${count(of)} sensors`);
    cut = after !== undefined && all.length >= MOST;
    away = [...new Set([...away, ...(part.away ?? [])])];
  }
  const compare = new Intl.Collator('en', { numeric: true }).compare;
  const sorted = all.length < 20000 ? all.sort(compare) : all.sort();
  return { cells: sorted, cut, of, away };
}

/** A colour of the style sheet as the bytes of a pixel. */
function bytes(name: string): Rgb {
  const canvas = make('canvas', { width: '1', height: '1' }), g = canvas.getContext('2d')!;
  g.fillStyle = colour(name);
  g.fillRect(0, 0, 1, 1);
  return g.getImageData(0, 0, 1, 1).data;
}

const mix = (a: Rgb, b: Rgb, part: number): Rgb => [0, 1, 2].map(i => Math.round(a[i] + (b[i] - a[i]) * part));
const word = (rgb: Rgb): number => (255 << 24 | rgb[2] << 16 | rgb[1] << 8 | rgb[0]) >>> 0;

/** Pixels of the cells: what is given a colour is shown with the next flush. */
function painter(canvas: HTMLCanvasElement, cells: number) {
  const context = canvas.getContext('2d', { alpha: false })!;
  let image = context.createImageData(1, 1), pixels = new Uint32Array(1), side = 1, gap = 0, ramp: number[] = [], alerts: number[] = [], back = 0, low = Infinity, high = 0;
  const x = new Int32Array(cells), y = new Int32Array(cells);
  return {
    x, y,
    begin(width: number, height: number, of: number): void {
      canvas.width = width;
      canvas.height = height;
      side = of;
      gap = side > 4 ? Math.max(1, side >> 3) : side > 2 ? 1 : 0;
      const calm = bytes('cell'), accent = bytes('accent');
      back = word(bytes('card'));
      ramp = Array.from({ length: 65 }, (_, i) => word(mix(calm, accent, i ? .15 + .85 * i / 64 : 0)));
      alerts = LEVELS.map(l => word(bytes(l)));
      image = context.createImageData(width, height);
      pixels = new Uint32Array(image.data.buffer).fill(back);
      low = 0;
      high = height;
    },
    cell(i: number, score: number, alert: number): void {
      const c = alert ? alerts[alert - 1] : ramp[Math.round(64 * score)], n = side - gap, w = canvas.width;
      for (let row = y[i], end = row + n; row < end; row++) pixels.fill(c, row * w + x[i], row * w + x[i] + n);
      low = Math.min(low, y[i]);
      high = Math.max(high, y[i] + n);
    },
    flush(): void {
      if (low < high) context.putImageData(image, 0, 0, 0, low, canvas.width, high - low);
      low = Infinity;
      high = 0;
    },
  };
}

function group(cells: string[]): Map<string, number[]> {
  const groups = new Map<string, number[]>();
  cells.forEach((name, i) => { const p = prefix(name), members = groups.get(p); if (members) members.push(i); else groups.set(p, [i]); });
  return groups;
}

/** The cells of sensors, live. `begin` starts it, `end` ends it. */
class Wall {
  private canvas: HTMLCanvasElement;
  private cursor = make('div', { class: 'cursor' });
  private labels = make('div');
  private at: Map<string, number>; // name -> cell
  private groups: Map<string, number[]>;
  private paint: ReturnType<typeof painter>;
  private score: Float32Array;
  private heard: Float64Array; // when the score came
  private standing: Uint8Array; // 1 + place in LEVELS of the gravest alert
  private changed: Uint8Array;
  private list: number[] = []; // of the cells to be painted
  private side = 8;
  private ratio = 1;
  private columns = 1;
  private frame = 0;
  private chosen = -1;
  private drawn = 0;
  private due: ReturnType<typeof setTimeout> | undefined;
  private fade: ReturnType<typeof setInterval> | undefined;
  private worker: Worker | undefined;
  private dark = matchMedia('(prefers-color-scheme: dark)');

  constructor(private box: HTMLElement, private tip: HTMLElement, private found: Cells, private shown: Omit<Frame, 'name'>) {
    const { cells } = found, n = cells.length;
    this.canvas = make('canvas', { class: 'wall', tabindex: '0', role: 'img', 'aria-label': `${count(n)} sensors; arrow keys go through them, Enter opens one` });
    box.replaceChildren(this.canvas, this.labels, this.cursor);
    this.at = new Map(cells.map((name, i) => [name, i]));
    this.groups = group(cells);
    this.paint = painter(this.canvas, n);
    [this.score, this.heard, this.standing, this.changed] = [new Float32Array(n), new Float64Array(n), new Uint8Array(n), new Uint8Array(n)];
  }

  async begin(glob: string): Promise<void> {
    this.listen();
    await this.alerts();
    this.worker = new Worker('/page/scores.js', { type: 'module' });
    this.worker.onmessage = ({ data }: MessageEvent<Answer>) => this.take(data);
    const question: Question = { names: this.found.cells, query: { what: `scores>=${LEAST},events`, glob } };
    this.worker.postMessage(question);
    this.fade = setInterval(() => this.forget(), 5000);
    addEventListener('resize', this.lay);
    this.dark.addEventListener('change', this.lay);
    this.point(-1);
    this.lay();
    this.frame = requestAnimationFrame(this.draw);
  }

  end(): void {
    this.worker?.terminate();
    cancelAnimationFrame(this.frame);
    clearInterval(this.fade);
    clearTimeout(this.due);
    removeEventListener('resize', this.lay);
    this.dark.removeEventListener('change', this.lay);
  }

  private listen(): void {
    const open = (i: number): void => { if (i >= 0) location.hash = 'sensor/' + encodeURIComponent(this.found.cells[i]); };
    this.canvas.addEventListener('mousemove', e => this.point(this.under(e)));
    this.canvas.addEventListener('mouseleave', () => this.point(-1));
    this.canvas.addEventListener('click', e => open(this.under(e)));
    this.canvas.addEventListener('keydown', e => {
      const steps: Record<string, number> = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: this.columns, ArrowUp: -this.columns }, step = steps[e.key];
      if (step) { this.point(Math.max(0, Math.min(this.found.cells.length - 1, this.chosen < 0 ? 0 : this.chosen + step))); e.preventDefault(); }
      if (e.key === 'Enter') open(this.chosen);
    });
  }

  private change(i: number): void {
    if (!this.changed[i]) { this.changed[i] = 1; this.list.push(i); }
  }

  private lay = (): void => {
    const width = this.box.clientWidth, { cells } = this.found, { groups, labels, paint } = this;
    if (!width) return;
    const ratio = this.ratio = devicePixelRatio || 1;
    const header = groups.size > 1 && groups.size <= LABELS ? Math.round(LABEL * ratio) : 0, across = Math.round(width * ratio);
    const side = this.side = Math.round(Math.max(2, Math.min(26 * ratio, Math.floor(ratio * Math.sqrt(width * 640 / cells.length)))));
    const columns = this.columns = Math.max(1, Math.floor((across - 8) / side));
    labels.replaceChildren();
    let y = 4;
    for (const [name, members] of groups) {
      if (header) {
        const label = make('span', { class: 'label' }, `${name || 'others'} (${count(members.length)})`);
        label.style.top = `${y / ratio}px`;
        labels.append(label);
      }
      y += header;
      members.forEach((cell, k) => { paint.x[cell] = 4 + k % columns * side; paint.y[cell] = y + Math.floor(k / columns) * side; });
      y += Math.ceil(members.length / columns) * side + (header ? 4 : 0);
    }
    paint.begin(across, y + 4, side);
    this.canvas.style.height = `${(y + 4) / ratio}px`;
    cells.forEach((_, i) => this.change(i));
    this.point(this.chosen);
  };

  private draw = (): void => {
    const { changed, heard, list, paint, score, standing } = this;
    this.frame = requestAnimationFrame(this.draw);
    if (!list.length || !this.shown.alive()) return;
    const now = Date.now();
    for (const i of list) {
      changed[i] = 0;
      paint.cell(i, now - heard[i] < FADES ? Math.min(1, score[i]) : 0, standing[i]);
    }
    this.drawn += list.length;
    list.length = 0;
    paint.flush();
    this.canvas.dataset.drawn = String(this.drawn); // so that tests see that it is alive
  };

  private async alerts(): Promise<void> {
    const got = await ask<Alerts>('alerts?limit=10000'), { standing } = this, before = standing.slice();
    standing.fill(0);
    for (const a of got.alerts) {
      const i = this.at.get(a.sensor) ?? this.at.get(a.sensor.replace(/#[a-z]+$/, '')), level = 1 + LEVELS.indexOf(a.level);
      if (i !== undefined && level && (!standing[i] || level < standing[i])) standing[i] = level;
    }
    for (let i = 0; i < standing.length; i++) if (standing[i] !== before[i]) this.change(i);
  }

  private under(e: MouseEvent): number {
    const { paint, ratio, side } = this, r = this.canvas.getBoundingClientRect(), x = (e.clientX - r.left) * ratio, y = (e.clientY - r.top) * ratio;
    for (let i = 0; i < paint.x.length; i++)
      if (x >= paint.x[i] && x < paint.x[i] + side && y >= paint.y[i] && y < paint.y[i] + side) return i;
    return -1;
  }

  private point(i: number): void {
    const { paint, ratio, score, side, standing } = this, { cells, cut, of, away } = this.found;
    this.chosen = i;
    this.cursor.hidden = i < 0;
    if (i >= 0) Object.assign(this.cursor.style, { left: `${paint.x[i] / ratio - 2}px`, top: `${paint.y[i] / ratio - 2}px`, width: `${side / ratio + 2}px`, height: `${side / ratio + 2}px` });
    this.tip.textContent = i < 0 ? `${count(cells.length)} sensors${cut ? ` of ${count(of)}: a glob shows others` : ''}${away.length ? `; those of ${away.join(', ')} are missing: away` : ''}`
      : `${cells[i]}${score[i] ? `: score ${number(score[i])}` : ''}${standing[i] ? `, an alert stands (${LEVELS[standing[i] - 1]})` : ''}`;
  }

  private take(data: Answer): void {
    if (data.well !== undefined) this.shown.told(data.well);
    if (data.event || data.well)
      this.due ??= setTimeout(() => { this.due = undefined; if (this.shown.alive()) this.alerts().catch(() => {}); }, 500);
    const now = Date.now();
    data.places?.forEach((i, k) => { this.score[i] = data.scores?.[k] ?? 0; this.heard[i] = now; this.change(i); });
  }

  private forget(): void {
    const { heard, score } = this, now = Date.now();
    for (let i = 0; i < score.length; i++) if (score[i] && now - heard[i] >= FADES) { score[i] = 0; this.change(i); }
  }
}

/** The cells of a glob, live; returns what ends it. */
async function show(box: HTMLElement, tip: HTMLElement, glob: string, shown: Omit<Frame, 'name'>): Promise<() => void> {
  const found = await names(glob, text => { tip.textContent = text; });
  if (found.cells.length === 0) {
    box.replaceChildren(make('div', { class: 'empty' }, glob ? 'No sensor has such a name.' : 'There are no sensors yet. Send something: hankel feed recording.csv'));
    tip.textContent = '';
    shown.told(true);
    return () => {};
  }
  const cells = new Wall(box, tip, found, shown);
  await cells.begin(glob);
  return () => cells.end();
}

export const wall: View = async (place, { told, alive }) => {
  const tip = make('p', { class: 'tip', role: 'status' }), box = make('div', { class: 'wallbox' });
  const glob = make('input', { type: 'search', placeholder: 'glob, such as pump*', 'aria-label': 'Glob' });
  const legend = make('p', { class: 'quiet legend' }, ...LEVELS.map(l => entry({ kind: l }, l)), entry({ kind: 'score' }, 'score, the stronger the higher'));
  let turn = 0, end = (): void => {};
  async function again(): Promise<void> {
    const mine = ++turn;
    end();
    end = () => {};
    const over = await show(box, tip, glob.value, { told, alive: () => alive() && mine === turn });
    if (mine === turn) end = over;
    else over();
  }
  place.append(make('h1', {}, 'Wall'), make('form', { class: 'filters', onsubmit: (e: SubmitEvent) => { e.preventDefault(); void again(); } }, glob), legend, tip, box);
  glob.addEventListener('change', again);
  await again();
  return () => { turn++; end(); };
};
