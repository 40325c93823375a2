// What the daemon answers, as ../openapi.json describes it: as much of it as the page uses. Times are ns since 1970, UTC.

export type Level = 'notice' | 'warning' | 'severe';
export type Nullable = number | null;

/** What an alert and the events of one have in common. */
interface Change {
  sensor: string;
  channel: string;
  time: number;
  from: number;
  instant: number;
  severity: number;
  level: Level;
  before: Nullable;
  after: Nullable;
  spread_before?: Nullable;
  spread_after?: Nullable;
  similar_from?: number;
  novelty?: { kind: string; compared: number; reach: number; low: number; high: number; nearest?: number };
  limit?: { limit: number; slope: number; earliest: number; reached: number; latest: Nullable };
  secondary?: boolean;
  provisional?: boolean;
  travels?: boolean;
  by?: string;
  maintenance?: boolean;
}

export interface Alert extends Change {
  number: number;
  acknowledged?: number;
}

export interface Alerts {
  standing: number;
  acknowledged: number;
  alerts: Alert[];
}

export interface Event extends Change {
  event: 'raised' | 'corrected' | 'cleared' | 'flapping' | 'acknowledged';
  id: string;
  number?: number;
  position: number;
}

/** What somebody told the daemon. */
export interface Told {
  told: string;
  time: number;
  position: number;
  sensor?: string;
  match?: string;
  incident?: number;
  by?: string;
  text?: string;
  until?: number;
}

/** A part of the log: what is in it, where it ends, and where the log does. */
export type Logged<Member extends string, One> = { [name in Member]: One[] } & { position: number; last: number };

export interface IncidentSensor {
  sensor: string;
  channels: string[];
  instant: number;
  raised: number;
}

export interface Incident {
  level: Level;
  told: boolean;
  feedback?: { kind: 'expected' | 'false'; text: string };
  about: {
    id: number;
    section?: string;
    rank: number;
    since: number;
    last: number;
    count: number;
    first: string;
    or: string[];
    ties: number;
    strongest: string;
    what?: string;
    sensors: IncidentSensor[];
    node?: string;
    below: number;
    of: number;
  };
}

export interface Incidents {
  made: boolean;
  standing: number;
  incidents: Incident[];
  over: Incident[];
}

/** A partition that a machine of a cluster scores. */
export interface Held {
  partition: number;
  epoch: number;
  since: string;
  next: number;
  lag_seconds: number;
}

/** A machine of a cluster, and what it says of itself. */
export interface Machine {
  name: string;
  away: boolean;
  silent: number;
  has: number;
  says: { role: string; state: string; why: string; broker: string; points: number; leads?: boolean; draining?: boolean; held?: Held[]; publishing?: { state: string; why: string; points: number } };
}

export interface Cluster {
  name: string;
  of: number;
  machine: string;
  machines: Machine[];
  unscored: number[] | null;
}

export interface MachineOfGroup {
  name: string;
  sensors: string[];
}

export interface Sensors {
  sensors: { name: string; derived: boolean }[];
  count: number;
  next?: number | string;
  away?: string[];
}

/** Of an algorithm, what its device has of a sensor. */
export interface Series {
  sensor: string;
  algorithm: string;
  section: string;
  keys: Record<string, string>;
  samples?: number;
  span?: number;
  first?: number;
  baseline?: Nullable;
  threshold?: { mode: 'adaptive' | 'fixed' | 'off'; of: 'score' | 'evidence'; value?: Nullable; blocks?: number };
  alert?: { raised: boolean; number: number };
  scores: [time: number, score: number][];
}

/** [time, value], or [time, value, true]: filled in. */
export type Point = [time: number, value: Nullable, filled?: boolean];

export interface Look {
  time: number;
  interval: number;
  series: Series[];
  points: Point[];
  machine?: string;
  partition?: number;
}

/** A sensor of a line of pipes, or of a heat line: what it reads, what the model has there, and by what it departs of late, beside its mean error. */
export interface LineSensor {
  name: string;
  kind: 'pressure' | 'temperature' | 'value' | 'flow';
  role: 'boundary' | 'check';
  place?: number; // of lines
  node?: string; // of networks and matrices
  to?: string;
  value?: Nullable;
  model?: Nullable;
  departs?: Nullable;
  error?: Nullable;
  explained?: Nullable;
}

export interface Line {
  number: number;
  name: string;
  running: boolean;
  units: { pressure?: string; temperature?: string; value?: string; flow: string };
  friction: number;
  length: number;
  points: [place: number, level: number, flow: number][]; // a level is a pressure or a temperature
  sensors: LineSensor[];
  network?: { nodes: number; pipes: number };
  matrix?: { unknowns: number };
  cause?: { kind: 'leak' | 'sensor'; share: number; size: number; place?: number; from?: number; to?: number; sensor?: string; near?: number; nodes?: { node: string; share: number; size: number }[] };
}

/** A field that models lines of pipes, with one of them. */
export interface Model {
  name: string;
  section: string;
  count: number;
  lines: string[];
  line: Line;
}

/** A camera, and with `shown` its last picture. */
export interface Camera {
  camera: string;
  time: number;
  height: number;
  width: number;
  tile: number;
  statistics: string[];
  shown?: { rows: number; columns: number; low: number; high: number; cells: string };
}

export interface Cameras {
  cameras: Camera[];
}

export interface Window {
  match: string;
  name?: string;
  by?: string;
  daily?: string;
  to?: string;
  now: boolean;
}

export interface Status {
  version: string;
  uptime_s: number;
  threads: number;
  backend: string;
  input: { pictures: number };
  points: { in: number; scored: number; pending: number; dropped: number; late: number; late_sensor?: string };
  udp: { lost_points: number };
  sensors: { count: number; refused_because?: string };
  derived: { sensors: number; points: number; late: number };
  groups: { machines: number };
  models: { lines: number; running: number; checks: number; poor: number; explained?: number };
  connections: { open: number };
  subscribers: { count: number; queued_bytes: number; gap_results: number };
  device: { state: string; why?: string };
  batches: { stalled_s: number; stalled_because?: string };
  configuration: { state: string; why?: string };
  security?: { certificates?: { name: string; state: string; crl?: string }[] };
  durability: { mode: string; state: string; why?: string; commit_p99_us: number; events_last?: number; shards: { journal_bytes?: number }[] };
  latency: Record<string, Record<string, number>>;
  maintenance: Window[];
  cluster?: { name: string; state: string; why: string; publishing?: { state: string; why: string } };
  notify: { name: string; type: string; state: string; events: number; waiting: number; given_up: number; answer?: string }[];
  incidents: { budget: number; told_today: number; withheld_today: number; gravest_today: number };
  mqtt: { name: string; way: string; state: string; messages: number; why?: string }[];
}

/** A result of the stream. */
export interface Result {
  sensor: string;
  time: number;
  value: number;
  score: Nullable;
  state: string;
}

/** What the stream brings, by the name of its event; results have none. */
export interface Streamed {
  '': Result;
  alert: Event;
  incident: unknown;
  notice: unknown;
  gap: { gap: { events: number } };
  fault: unknown;
}
