// Cameras: the last picture of one, with its tiles, each a sensor: coloured by its score, outlined where an alert stands.
import type { Alerts, Camera, Cameras, Level } from './api';
import { ask, colour, count, entry, make, number, time } from './tools';
import type { View } from './tools';
import { stream } from './stream';

const EVERY = 1000; // ms
const LEAST = 0.2; // scores below are calm
const FADES = 60000; // ms after which a score that was not repeated is calm again
const LEVELS: Level[] = ['severe', 'warning', 'notice'];
const HEAT = [[0, 0, 4], [60, 15, 110], [147, 38, 103], [221, 81, 58], [252, 165, 10], [252, 255, 164]]; // cold to hot, evenly apart

const DERIVED = /#[a-z]+(\.[a-z]+)?$/; // a series made of a tile's, such as TILE#graph or TILE#despike.graph

const hash = (camera: string): string => 'cameras/' + encodeURIComponent(camera);
const literal = (name: string): string => name.replace(/[\\*?[\]]/g, '?');

/** The colour of cell 1..255; 0 is none. */
function heat(cell: number): number[] {
  if (!cell) return [128, 128, 128];
  const at = (cell - 1) / 254 * (HEAT.length - 1), i = Math.min(Math.floor(at), HEAT.length - 2);
  return [0, 1, 2].map(k => Math.round(HEAT[i][k] + (HEAT[i + 1][k] - HEAT[i][k]) * (at - i)));
}

/** The picture's cells as a canvas of that many pixels. */
function cells({ rows, columns, cells }: NonNullable<Camera['shown']>): HTMLCanvasElement {
  const canvas = make('canvas', { width: String(columns), height: String(rows) }), g = canvas.getContext('2d')!, image = g.createImageData(columns, rows);
  [...atob(cells)].forEach((c, i) => image.data.set([...heat(c.charCodeAt(0)), 255], 4 * i));
  g.putImageData(image, 0, 0);
  return canvas;
}

/** Of a tile: the sensor of it that says most, its score, and the level of its alert, 0: none stands. */
interface Tile {
  sensor: string;
  score: number;
  level: number;
}

/** What is known of the tiles of a camera. */
function tiles(c: Camera) {
  const across = Math.ceil(c.width / c.tile), down = Math.ceil(c.height / c.tile), heard = new Map<string, [score: number, at: number]>(), standing = new Map<string, number>();
  return {
    across, down,
    hear(sensor: string, score: number): void { heard.set(sensor, [score, Date.now()]); },
    alerts(got: Alerts): void {
      standing.clear();
      for (const a of got.alerts) {
        const name = a.sensor.replace(DERIVED, ''), level = 1 + LEVELS.indexOf(a.level);
        standing.set(name, Math.min(level, standing.get(name) ?? level));
      }
    },
    of(k: number): Tile {
      const all = c.statistics.map((word): Tile => {
        const sensor = `${c.camera}/${Math.floor(k / across)},${k % across}/${word}`, [score, at] = heard.get(sensor) ?? [0, 0];
        return { sensor, score: Date.now() - at < FADES ? score : 0, level: standing.get(sensor) ?? 0 };
      });
      return all.reduce((a, b) => (b.level && (!a.level || b.level < a.level)) || (b.level === a.level && b.score > a.score) ? b : a);
    },
  };
}

export const cameras: View = async (place, { name, told, alive }) => {
  const list = (await ask<Cameras>('cameras')).cameras;
  if (!list.length) {
    place.append(make('h1', {}, 'Cameras'), make('div', { class: 'empty' }, 'No camera has sent a picture since the daemon was started.'));
    told(true);
    return;
  }
  const camera = list.find(c => c.camera === name) ?? list[0];
  const chosen = make('select', { 'aria-label': 'Camera', onchange: () => { location.hash = hash(chosen.value); } }, ...list.map(c => make('option', { value: c.camera }, c.camera)));
  chosen.value = camera.camera;
  const canvas = make('canvas', { class: 'picture', tabindex: '0', role: 'img' }), tip = make('p', { class: 'tip', role: 'status' }), when = make('span'), scale = make('span', { class: 'entry' });
  const g = canvas.getContext('2d', { alpha: false })!, known = tiles(camera), n = known.across * known.down;
  const legend = make('p', { class: 'quiet legend' }, scale, ...LEVELS.map(l => entry({ kind: l }, l)), entry({ kind: 'score' }, 'score'));
  canvas.setAttribute('aria-label', `${camera.camera}: ${count(n)} tiles; arrow keys go through them, Enter opens one's sensor`);
  place.append(make('h1', {}, camera.camera), make('p', { class: 'filters' }, ...(list.length > 1 ? [chosen] : []), when), legend, tip, canvas);
  let picture: HTMLCanvasElement | undefined, at = -1, under = -1, side = 1;

  function draw(): void {
    const width = place.clientWidth, ratio = devicePixelRatio || 1;
    if (!picture || !width) return;
    side = Math.min(width, 640 * camera.width / camera.height) * ratio / camera.width; // of a pixel
    canvas.width = Math.round(camera.width * side);
    canvas.height = Math.round(camera.height * side);
    canvas.style.height = `${canvas.height / ratio}px`;
    canvas.style.width = `${canvas.width / ratio}px`;
    g.imageSmoothingEnabled = false;
    const block = Math.ceil(Math.max(camera.width, camera.height) / 256); // pixels on a side of a cell
    g.drawImage(picture, 0, 0, picture.width * block * side, picture.height * block * side);
    let marked = 0;
    for (const alerting of [false, true]) for (let k = 0; k < n; k++) { // alerts over what is beside them
      const { score, level } = known.of(k), x = k % known.across * camera.tile * side, y = Math.floor(k / known.across) * camera.tile * side;
      const w = Math.min(camera.tile * side, canvas.width - x), h = Math.min(camera.tile * side, canvas.height - y);
      if (alerting !== level > 0) continue;
      marked += alerting ? 1 : 0;
      g.fillStyle = colour('accent');
      g.globalAlpha = score >= LEAST && !level ? .25 + .4 * Math.min(1, score) : 0;
      g.fillRect(x, y, w, h);
      const inset = (level ? 2.5 : .25) * ratio;
      g.globalAlpha = level ? 1 : .35;
      g.strokeStyle = '#fff';
      g.lineWidth = 2 * inset;
      g.strokeRect(x + inset, y + inset, w - 2 * inset, h - 2 * inset);
      if (level) { // within a white edge: the colours of a level do not stand out from all of the picture's
        g.strokeStyle = colour(LEVELS[level - 1]);
        g.lineWidth = 3 * ratio;
        g.strokeRect(x + inset, y + inset, w - 2 * inset, h - 2 * inset);
      }
      g.globalAlpha = 1;
    }
    canvas.dataset.tiles = String(n); // for whoever looks what is shown
    canvas.dataset.alerts = String(marked);
    canvas.dataset.time = String(at);
  }

  async function next(): Promise<void> {
    const [p, alerts] = await Promise.all([ask<Camera>(`picture?camera=${encodeURIComponent(camera.camera)}`), ask<Alerts>(`alerts?limit=10000&glob=${encodeURIComponent(literal(camera.camera) + '/*')}`)]);
    if (!alive()) return;
    if (p.height !== camera.height || p.width !== camera.width || p.tile !== camera.tile) { dispatchEvent(new Event('hashchange')); return; }
    known.alerts(alerts);
    if (p.shown && p.time !== at) {
      at = p.time;
      picture = cells(p.shown);
      when.replaceChildren(`${camera.width} x ${camera.height} pixels, `, time(p.time));
      scale.replaceChildren(number(p.shown.low), make('i', { class: 'heat' }), number(p.shown.high));
    }
    draw();
  }
  function point(k: number): void {
    under = k;
    const t = k < 0 ? undefined : known.of(k);
    tip.textContent = t ? `${t.sensor}${t.score >= LEAST ? `: score ${number(t.score)}` : ''}${t.level ? `, an alert stands (${LEVELS[t.level - 1]})` : ''}` : `${count(n)} tiles of ${camera.tile} x ${camera.tile} pixels`;
    canvas.title = t?.sensor ?? '';
  }
  function tile(e: MouseEvent): number {
    const r = canvas.getBoundingClientRect(), of = camera.tile * r.width / camera.width;
    return Math.min(Math.floor((e.clientY - r.top) / of), known.down - 1) * known.across + Math.min(Math.floor((e.clientX - r.left) / of), known.across - 1);
  }
  const open = (k: number): void => { if (k >= 0) location.hash = 'sensor/' + encodeURIComponent(known.of(k).sensor); };
  canvas.addEventListener('mousemove', e => point(tile(e)));
  canvas.addEventListener('mouseleave', () => point(-1));
  canvas.addEventListener('click', e => open(tile(e)));
  canvas.addEventListener('keydown', e => {
    const steps: Record<string, number> = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: known.across, ArrowUp: -known.across }, step = steps[e.key];
    if (step) { point(Math.max(0, Math.min(n - 1, under < 0 ? 0 : under + step))); e.preventDefault(); }
    if (e.key === 'Enter') open(under);
  });
  point(-1);
  await next();
  told(true);
  let due: ReturnType<typeof setTimeout>;
  const again = (): void => { due = setTimeout(() => { next().then(() => told(true), () => told(false)).finally(() => { if (alive()) again(); }); }, EVERY); };
  again();
  const end = stream({ what: `scores>=${LEAST}`, glob: literal(camera.camera) + '/*' }, { '': r => { known.hear(r.sensor.replace(DERIVED, ''), r.score ?? 0); } }, () => {});
  addEventListener('resize', draw);
  return () => { clearTimeout(due); end(); removeEventListener('resize', draw); };
};
