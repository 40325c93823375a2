// Charts, by uPlot: of a sensor, values above and scores below on one axis of time; of an alert, the values around its instant. Wheel, drag
// and keys zoom and pan; the right edge follows what comes until somebody moves it.
/*! uPlot 1.6.32, Copyright (c) 2022 Leon Sorokin, MIT License: /page/uplot/LICENSE */
import type { Alert, Level, Look, Nullable, Point } from './api';
import { colour, make, number, time } from './tools';
import type { Child } from './tools';
import uPlot from './uplot/uPlot.esm.js';

const SCORES = 0.3, LOWER = 0.36; // of the height: what scores take, and that with the room above them
const SECOND = 1e9, MS = 1e6; // ns
export const SERIES = ['accent', 'after', 'notice', 'warning', 'before'];

/** Scores of an algorithm by time; null: there was none. */
export type Scores = [time: number, score: Nullable][];

/** An alert as far as it is drawn; until: how far its level after is known to hold. */
export interface Marked {
  from: number;
  instant: number;
  until: number;
  before: Nullable;
  after: Nullable;
  spread_before?: Nullable;
  spread_after?: Nullable;
  level?: Level;
  novelty?: { kind: string };
}

/** In order of time. */
export interface Charted {
  points: Point[];
  scores: Scores[];
  thresholds: (Nullable | undefined)[];
  alerts: Marked[];
}

/** Moves an end by a part of the distance, so that a line does not touch the frame. */
function extent(low: Nullable, high: Nullable): [number, number] {
  if (low === null || high === null) return [0, 1];
  const room = (high - low || Math.abs(high) || 1) * .06;
  return [low - room, high + room];
}

/** What a tick of the axis of time says, in the viewer's zone; step: ms between them. */
function label(ms: number, step: number): string {
  const at = new Date(ms), s = step / 1000;
  if (s >= 86400) return at.toLocaleDateString(undefined, { month: 'short', day: 'numeric', ...(s > 1e7 ? { year: 'numeric' } : {}) });
  const part: Intl.DateTimeFormatOptions = s < 1 ? { second: '2-digit', fractionalSecondDigits: s < .01 ? 3 : s < .1 ? 2 : 1 } : s < 60 ? { second: '2-digit' } : {};
  return at.toLocaleTimeString(undefined, { hour: '2-digit', minute: '2-digit', ...part });
}

/** Levels before and after, and how far values lay about them. */
function levels(u: uPlot, a: Marked): void {
  const g = u.ctx, { left, width } = u.bbox, x = (ns: number): number => u.valToPos(ns / MS, 'x', true), y = (v: number): number => u.valToPos(v, 'v', true);
  if (a.novelty?.kind === 'shape') return; // it has a distance instead
  const parts: [number, number, Nullable, number, string][] = [[a.from, a.instant, a.before, a.spread_before ?? 0, 'before'], [a.instant, a.until, a.after, a.spread_after ?? 0, 'after']];
  g.save();
  g.lineWidth = 2 * uPlot.pxRatio;
  for (const [begin, end, level, spread, name] of parts) {
    const l = Math.max(left, x(begin)), r = Math.min(left + width, x(end));
    if (level === null || end <= begin || r <= l) continue;
    g.fillStyle = g.strokeStyle = colour(name);
    g.globalAlpha = .16;
    g.fillRect(l, y(level + spread), r - l, Math.max(1, y(level - spread) - y(level + spread)));
    g.globalAlpha = 1;
    g.beginPath();
    g.moveTo(l, y(level));
    g.lineTo(r, y(level));
    g.stroke();
  }
  g.restore();
}

export function dashed(u: uPlot, tint: string, dash: number[], from: [number, number], to: [number, number]): void {
  const g = u.ctx;
  g.save();
  g.lineWidth = 1.4 * uPlot.pxRatio;
  g.strokeStyle = colour(tint);
  g.setLineDash(dash.map(d => d * uPlot.pxRatio));
  g.beginPath();
  g.moveTo(...from);
  g.lineTo(...to);
  g.stroke();
  g.restore();
}

function instant(u: uPlot, a: Marked): void {
  const { left, top, width, height } = u.bbox, x = u.valToPos(a.instant / MS, 'x', true);
  if (x >= left && x <= left + width) dashed(u, a.level ?? 'notice', [5, 3], [x, top], [x, top + height]);
}

export function back(u: uPlot): void {
  u.ctx.fillStyle = colour('card');
  u.ctx.fillRect(0, 0, u.ctx.canvas.width, u.ctx.canvas.height);
}

export function describe(u: uPlot, text: string): void {
  u.ctx.canvas.setAttribute('role', 'img');
  u.ctx.canvas.setAttribute('aria-label', text);
}

/** Columns by time: a time that one of them does not have breaks no line of it. */
function table({ points, scores }: Charted): uPlot.AlignedData {
  const columns = [points.map(p => [p[0], p[1]] as const), ...scores].map(rows => [rows.map(r => r[0] / MS), rows.map(r => r[1])] as uPlot.AlignedData);
  return uPlot.join(columns);
}

export const grid = (): uPlot.Axis => ({ stroke: () => colour('quiet'), font: '12px system-ui, "DejaVu Sans", sans-serif', grid: { stroke: () => colour('line'), width: 1 }, ticks: { show: false } });

function options(width: number, height: number, shown: () => Charted, hovered: (u: uPlot) => void): uPlot.Options {
  const floor = (min: number, max: number): number => min + (max - min) * LOWER;
  const thresholds = (u: uPlot): void => shown().thresholds.forEach((t, i) => {
    const { left, width: w } = u.bbox, y = u.valToPos(t ?? 0, 's', true);
    if (t) dashed(u, SERIES[i % SERIES.length], [2, 4], [left, y], [left + w, y]);
  });
  return {
    width, height, ms: 1, legend: { show: false }, padding: [10, 14, 0, 0],
    cursor: { y: false, drag: { x: false, y: false }, bind: { dblclick: () => null } },
    scales: {
      x: { time: true },
      v: { range: (_, min, max) => { const [low, high] = extent(min, max); return [high - (high - low) / (1 - LOWER), high]; } },
      s: { range: [0, 1 / SCORES] },
    },
    axes: [
      { ...grid(), space: 110, size: 30, values: (_, splits, __, ___, step) => splits.map(s => label(s, step)) },
      { ...grid(), scale: 'v', size: 58, space: 50, values: (_, splits) => splits.map(number), splits: (_, __, min, max, step) => {
        const out: number[] = [];
        for (let i = Math.ceil(floor(min, max) / step); i * step <= max && out.length < 20; i++) out.push(+(i * step).toPrecision(12));
        return out;
      } },
      { ...grid(), scale: 's', side: 1, size: 34, splits: () => [0, .5, 1], values: (_, splits) => splits.map(String) },
    ],
    series: [{}, { scale: 'v', width: 1.4, stroke: () => colour('accent'), points: { fill: () => colour('card'), size: 5 } },
      ...shown().scores.map((_, i) => ({ scale: 's', width: 1.4, stroke: () => colour(SERIES[i % SERIES.length]), points: { show: false } }))],
    hooks: {
      drawClear: [back], drawAxes: [u => shown().alerts.forEach(a => levels(u, a))],
      draw: [u => { thresholds(u); shown().alerts.forEach(a => instant(u, a)); }], setCursor: [hovered],
    },
  };
}

/** Which part of the time is shown; live: the newest is, and stays so. */
class Range {
  live = true;
  private from = 0;
  private to = 0;
  private span = 0; // 0: all that there is

  constructor(private readonly points: () => Point[]) {}
  get all(): boolean { return this.span === 0; }
  private reach(): [number, number] {
    const points = this.points();
    return points.length ? [points[0][0], points[points.length - 1][0]] : [0, 1];
  }
  get(): [number, number] {
    const [first, last] = this.reach();
    if (this.live) { this.to = last; this.from = this.span ? last - this.span : first; }
    return [this.from, this.to > this.from ? this.to : this.from + SECOND];
  }
  set(a: number, b: number): void {
    const [first, last] = this.reach(), width = Math.max((last - first) / 1e4, Math.min(b - a, (last - first) * 1.2 || SECOND));
    this.live = b >= last && a <= last;
    this.span = this.live && width >= last - first ? 0 : width;
    this.from = Math.max(first - width / 2, Math.min(a, last - width / 4));
    this.to = this.from + width;
  }
  zoom(factor: number, around?: number): void {
    const [a, b] = this.get(), at = around ?? (a + b) / 2;
    this.set(at - (at - a) * factor, at + (b - at) * factor);
  }
  pan(part: number): void {
    const [a, b] = this.get();
    this.set(a + (b - a) * part, b + (b - a) * part);
  }
  follow(everything: boolean): void {
    this.live = true;
    if (everything) this.span = 0;
  }
}

export interface Chart {
  root: HTMLElement;
  canvas(): HTMLCanvasElement | undefined;
  draw(): void;
  zoom(factor: number): void;
  all(): void;
  follow(): void;
  end(): void;
}

/** moved: the range is another; pointed: what the mouse points at, nothing where it does not. */
export function chart(data: () => Charted, moved: (live: boolean) => void, pointed: (...what: Child[]) => void): Chart {
  const root = make('div', { class: 'series' }), range = new Range(() => data().points);
  let u: uPlot | undefined;
  const change = (by: () => void): void => { by(); moved(range.live); draw(); };

  function hovered(of: uPlot): void {
    const i = of.cursor.idx, [times, values, ...scores] = of.data;
    if (typeof i !== 'number' || i < 0 || i >= times.length) { pointed(); return; }
    const said = scores.map(s => s[i]).filter((s): s is number => typeof s === 'number').map(s => s.toFixed(3));
    pointed(time(times[i] * MS, label(times[i], 1000)), `: ${number(values[i])}`, said.length ? `, score ${said.join(', ')}` : '');
  }
  function begin(): uPlot {
    const made = new uPlot(options(root.clientWidth, root.clientHeight, data, hovered), undefined, root), { canvas } = made.ctx;
    describe(made, 'Values and scores by time. Arrow keys move, plus and minus zoom, Home shows all.');
    canvas.tabIndex = 0;
    listen(made);
    return made;
  }
  function draw(): void {
    if (!root.clientWidth) return;
    u ??= begin();
    const [a, b] = range.get(), { canvas } = u.ctx, plot = u;
    if (u.width !== root.clientWidth || u.height !== root.clientHeight) u.setSize({ width: root.clientWidth, height: root.clientHeight });
    u.batch(() => { plot.setData(table(data()), false); plot.setScale('x', { min: a / MS, max: b / MS }); });
    canvas.dataset.from = String(a);
    canvas.dataset.to = String(b);
    canvas.dataset.points = String(data().points.length);
    canvas.dataset.scores = String(data().scores.reduce((n, rows) => n + rows.length, 0));
  }
  function listen({ over, ctx }: uPlot): void {
    let drag: { x: number; from: number; to: number } | null = null;
    over.addEventListener('wheel', e => {
      e.preventDefault();
      const box = over.getBoundingClientRect(), [a, b] = range.get(), at = a + (b - a) * (e.clientX - box.left) / box.width;
      change(() => range.zoom(e.deltaY > 0 ? 1.25 : .8, at));
    }, { passive: false });
    over.addEventListener('pointerdown', e => {
      const [from, to] = range.get();
      drag = { x: e.clientX, from, to };
      over.setPointerCapture(e.pointerId);
      ctx.canvas.focus();
    });
    over.addEventListener('pointermove', e => {
      if (!drag || Math.abs(drag.x - e.clientX) <= 2) return;
      const { from, to, x } = drag, by = (to - from) * (x - e.clientX) / over.clientWidth;
      change(() => range.set(from + by, to + by));
    });
    for (const name of ['pointerup', 'pointercancel']) over.addEventListener(name, () => { drag = null; });
    over.addEventListener('dblclick', all);
    ctx.canvas.addEventListener('keydown', e => {
      const keys: Record<string, () => void> = { ArrowLeft: () => pan(-.2), ArrowRight: () => pan(.2), '+': () => zoom(.6), '=': () => zoom(.6), '-': () => zoom(1.7), Home: all, End: follow };
      const does = keys[e.key];
      if (does) { does(); e.preventDefault(); }
    });
  }
  const zoom = (factor: number): void => change(() => range.zoom(factor)), pan = (part: number): void => change(() => range.pan(part));
  const all = (): void => change(() => range.follow(true)), follow = (): void => change(() => range.follow(false));
  return { root, canvas: () => u?.ctx.canvas, draw, zoom, all, follow, end: () => u?.destroy() };
}

/** A small chart of an alert. */
export interface Spark {
  root: HTMLElement;
  show(a: Alert, look: Look | null): void;
  end(): void;
}

/** Ranges of time and value, and what is between them. */
interface Small {
  x: [number, number];
  y: [number, number];
  data: uPlot.AlignedData;
  mark: Marked;
}

/** Values around an alert's instant; without values from before it, the levels alone. */
function around(a: Alert, look: Look | null): Small {
  const last = look?.points.at(-1)?.[0];
  if (!look || last === undefined || look.points[0][0] > a.instant) {
    const ends = [[a.before ?? 0, a.spread_before ?? 0], [a.after ?? 0, a.spread_after ?? 0]], half = SECOND;
    const x: [number, number] = [(a.instant - half) / MS, (a.instant + half) / MS];
    return { x, y: extent(Math.min(...ends.map(([l, s]) => l - s)), Math.max(...ends.map(([l, s]) => l + s))), data: [x, [null, null]], mark: { ...a, from: a.instant - half, until: a.instant + half } };
  }
  const from = a.instant - Math.max(last - a.instant, 60 * look.interval), seen = look.points.filter(p => p[0] >= from), values = seen.map(p => p[1]).filter((v): v is number => v !== null);
  const [low, high] = [Math.min(...values), Math.max(...values)], within = (v: Nullable): Nullable => (v === null ? null : Math.max(low, Math.min(high, v)));
  return { x: [seen[0][0] / MS, Math.max(last, seen[0][0] + 1) / MS], y: extent(low, high), data: [seen.map(p => p[0] / MS), seen.map(p => p[1])],
    mark: { ...a, from: seen[0][0], until: last, before: within(a.before), after: within(a.after), spread_before: 0, spread_after: 0 } };
}

export function spark(): Spark {
  const root = make('div', { class: 'chart' });
  let u: uPlot | undefined, small: Small;
  function begin(): uPlot {
    const made = new uPlot({
      width: root.clientWidth, height: root.clientHeight, ms: 1, legend: { show: false }, cursor: { show: false }, padding: [2, 2, 2, 2],
      axes: [{ show: false }, { show: false, scale: 'v' }], scales: { x: { time: false }, v: { range: () => small.y } },
      series: [{}, { scale: 'v', width: 1.3, stroke: () => colour('accent'), points: { show: false } }],
      hooks: { drawAxes: [plot => levels(plot, small.mark)], draw: [plot => instant(plot, small.mark)] },
    }, undefined, root);
    describe(made, 'values around the change, level before and after');
    return made;
  }
  return {
    root,
    show(a, look) {
      if (!root.clientWidth) return;
      small = around(a, look);
      const plot = u ??= begin();
      if (plot.width !== root.clientWidth || plot.height !== root.clientHeight) plot.setSize({ width: root.clientWidth, height: root.clientHeight });
      plot.batch(() => { plot.setData(small.data, false); plot.setScale('x', { min: small.x[0], max: small.x[1] }); });
    },
    end: () => u?.destroy(),
  };
}
