// Charts of a line of pipes, by uPlot: pressure and flow along it, and what its checks depart from the model by.
import type { Line, LineSensor, Nullable } from './api';
import { back, dashed, describe, grid } from './chart';
import { colour, make, number } from './tools';
import uPlot from './uplot/uPlot.esm.js';

const KM = 1000;
const TINTS = { pressure: 'accent', flow: 'after' } as const;
type Column = [place: number, value: Nullable][];

/** Columns by place: a place that one of them does not have breaks no line of it. */
const table = (columns: Column[]): uPlot.AlignedData => uPlot.join(columns.map(rows => {
  const sorted = [...rows].sort((a, b) => a[0] - b[0]);
  return [sorted.map(r => r[0] / KM), sorted.map(r => r[1])] as uPlot.AlignedData;
}));

const of = (line: Line, flow: boolean): LineSensor[] => line.sensors.filter(s => (s.kind === 'flow') === flow);
const read = (line: Line, flow: boolean): Column => of(line, flow).map(s => [s.place ?? 0, s.value ?? null]);
/** In multiples of the mean error; two at a place stand side by side. */
const departs = (line: Line, flow: boolean): Column => of(line, flow).filter(s => s.role === 'check' && s.error).map((s): [number, number] =>
  [(s.place ?? 0) + (flow ? line.length / 200 : 0), (s.departs ?? 0) / (s.error ?? 1)]);

function leak(u: uPlot, line: Line): void {
  const c = line.cause, { left, top, width, height } = u.bbox;
  if (c?.kind !== 'leak') return;
  const at = (m: number): number => Math.max(left, Math.min(left + width, u.valToPos(m / KM, 'x', true)));
  const [from, to, x] = [at(c.from ?? 0), at(c.to ?? 0), at(c.place ?? 0)];
  u.ctx.save();
  u.ctx.globalAlpha = .18;
  u.ctx.fillStyle = colour('severe');
  u.ctx.fillRect(from, top, Math.max(1, to - from), height);
  u.ctx.restore();
  dashed(u, 'severe', [5, 3], [x, top], [x, top + height]);
}

/** A stem from zero to each departure. */
function stems(u: uPlot): void {
  const g = u.ctx, zero = u.valToPos(0, 'd', true);
  u.data.slice(1).forEach((column, k) => column.forEach((v, i) => {
    if (typeof v !== 'number') return;
    const x = u.valToPos(u.data[0][i], 'x', true);
    g.save();
    g.lineWidth = 3 * uPlot.pxRatio;
    g.strokeStyle = colour(k === 0 ? TINTS.pressure : TINTS.flow);
    g.beginPath();
    g.moveTo(x, zero);
    g.lineTo(x, u.valToPos(v, 'd', true));
    g.stroke();
    g.restore();
  }));
}

const dots = (scale: string, tint: string): uPlot.Series => ({ scale, stroke: () => colour(tint), paths: () => null, points: { show: true, size: 9, width: 2, fill: () => colour('card') } });
const curve = (scale: string, tint: string): uPlot.Series => ({ scale, width: 1.6, stroke: () => colour(tint), points: { show: false } });
const places = (): uPlot.Axis => ({ ...grid(), space: 70, size: 30, values: (_, splits) => splits.map(s => (s < 0 ? '' : `${number(s)} km`)) });
const values = (scale: string, side: 1 | 3 = 3): uPlot.Axis => ({ ...grid(), scale, side, size: 58, space: 40, values: (_, splits) => splits.map(number), ...(side === 1 ? { grid: { show: false } } : {}) });
/** Room above and below; a flow that is the same everywhere is a line and no noise. */
const range = (_: uPlot, min: Nullable, max: Nullable): [number, number] => {
  const [low, high] = [min ?? 0, max ?? 1], room = Math.max((high - low) * .08, Math.abs(high) * .01, 1e-9);
  return [low - room, high + room];
};

export interface Profile {
  root: HTMLElement;
  draw(line: Line): void;
  end(): void;
}

/** One chart; what it shows: its columns. */
function one(kind: string, words: string, options: (shown: () => Line) => Partial<uPlot.Options>, columns: (line: Line) => Column[]): Profile {
  const root = make('div', { class: kind });
  let u: uPlot | undefined, shown: Line;
  function begin(): uPlot {
    const made = new uPlot({ width: root.clientWidth, height: root.clientHeight, legend: { show: false }, padding: [10, 14, 0, 0], cursor: { show: false }, ...options(() => shown) } as uPlot.Options, undefined, root);
    describe(made, words);
    return made;
  }
  return {
    root,
    draw(line) {
      shown = line;
      if (!root.clientWidth) return;
      const plot = u ??= begin();
      if (plot.width !== root.clientWidth || plot.height !== root.clientHeight) plot.setSize({ width: root.clientWidth, height: root.clientHeight });
      plot.batch(() => { plot.setData(table(columns(line)), true); plot.setScale('x', { min: -.02 * line.length / KM, max: 1.02 * line.length / KM }); });
      plot.ctx.canvas.dataset.points = String(line.points.length);
      plot.ctx.canvas.dataset.leak = String(line.cause?.kind === 'leak' ? line.cause.place : '');
    },
    end: () => u?.destroy(),
  };
}

/** Pressure and flow along the line: the model's, and what sensors read. */
export const profile = (): Profile => one('series profile', 'Pressure, or temperature, and flow along the line: the model as lines, what sensors read as dots.', shown => ({
  scales: { x: { time: false }, p: { range }, q: { range } }, axes: [places(), values('p'), values('q', 1)],
  series: [{}, curve('p', TINTS.pressure), curve('q', TINTS.flow), dots('p', TINTS.pressure), dots('q', TINTS.flow)],
  hooks: { drawClear: [back], drawAxes: [u => leak(u, shown())] },
}), line => [line.points.map(p => [p[0], p[1]]), line.points.map(p => [p[0], p[2]]), read(line, false), read(line, true)]);

/** What checks depart by, in multiples of their mean errors. */
export const residuals = (): Profile => one('series residuals', 'Departures of the checks along the line, in multiples of their mean errors.', shown => ({
  padding: [10, 14 + 58, 0, 0], // the places stand below those of the profile, which has a second axis
  scales: { x: { time: false }, d: { range: (_, min, max) => { const most = Math.max(3, Math.abs(min ?? 0), Math.abs(max ?? 0)) * 1.15; return [-most, most]; } } },
  axes: [places(), values('d')], series: [{}, dots('d', TINTS.pressure), dots('d', TINTS.flow)],
  hooks: { drawClear: [back], drawAxes: [u => leak(u, shown())], drawSeries: [(u, i) => { if (i === 1) stems(u); }] },
}), line => [departs(line, false), departs(line, true)]);
