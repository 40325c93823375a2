/** Times: a Date, a number of ms since 1970 as Date.now() gives it, or a bigint of ns. What comes has bigints of ns. */
export type Time = Date | number | bigint;
export type State = 'warming' | 'ok' | 'gap' | 'late' | 'rejected' | 'provisional';
export type Channel = '' | 'score' | 'change' | 'shift' | 'group' | 'novelty' | 'limit';
export type Level = 'unknown' | 'notice' | 'warning' | 'severe';

/** What the daemon found out about one point. */
export interface Result {
  type: 'result';
  sensor: string;
  time: bigint;
  /** Only if subscribed with values. */
  value?: number;
  /** null: none was due. */
  score: number | null;
  state: State;
  /** Of the point among its sensor's, only if subscribed with sequences. */
  sequence?: bigint;
}

/** Results as columns, if subscribed with columns. */
export interface Scores {
  type: 'scores';
  /** Of sensors; `sensor` says of each result which of these. */
  names: string[];
  sensor: Uint32Array;
  time: BigInt64Array;
  value?: Float64Array;
  /** NaN: none was due. */
  score: Float32Array;
  /** Which of STATES. */
  state: Uint8Array;
  sequence?: BigUint64Array;
}

/** What is new, of an event of the channel novelty. */
export interface Novelty {
  kind: 'value' | 'context' | 'shape';
  expected: number;
  tolerance?: number;
  nearest: bigint;
  oldest: bigint;
  low: number;
  high: number;
  compared: number;
  reach: number;
}

/** When a trend reaches a limit, of an event of the channel limit. */
export interface Limit {
  limit: number;
  /** Units a second, below 0: it falls. */
  slope: number;
  /** By the steeper quartile of the slopes, their median, and the gentler quartile; null: never. */
  earliest: bigint;
  reached: bigint;
  latest: bigint | null;
  /** Of 24 that the trend is of. */
  blocks: number;
}

/** An alert; or a notice that a sensor is silent, or back, of which only sensor, kind and time mean something. */
export interface HankelEvent {
  type: 'event' | 'notice';
  sensor: string;
  /** With the sensor's name the alert's id. */
  number: number;
  kind: 'raised' | 'corrected' | 'cleared' | 'flapping' | 'acknowledged' | 'stale' | 'back';
  score: number;
  time: bigint;
  /** Start of the interval that the alert was raised on. */
  from: bigint;
  /** Estimate of when the change took place. */
  instant: bigint;
  /** Levels before and after the change. */
  before: number;
  after: number;
  /** In the daemon's event log, and among the sensor's events; only if subscribed with `since`. */
  position?: bigint;
  sequence?: bigint;
  /** That it belongs to, 0n: to none; only if subscribed with incidents. */
  incident?: bigint;
  /** This and what follows is not there if subscribed without details. 0..40; level() names it. */
  severity?: number;
  margin?: number;
  channel?: Channel;
  spreadBefore?: number;
  spreadAfter?: number;
  /** It was raised in a maintenance window. */
  maintenance?: boolean;
  /** Raised by a small window while the wanted one was not full: most such alerts are false. */
  provisional?: boolean;
  /** A change that travels along a line: `after` is where it began, `spreadAfter` its speed, `by` the nearest sensor. */
  travels?: boolean;
  held?: number;
  by?: string;
  likeness?: number;
  similar?: number;
  similarFrom?: bigint;
  novelty?: Novelty;
  limit?: Limit;
}

/** What became of an incident: of what several sensors, or several algorithms, say about one cause. */
export interface Incident {
  type: 'incident';
  /** told: it fits into the budget of messages; update: a told one is graver; withheld: over, and never told. */
  kind: 'told' | 'update' | 'merged' | 'closed' | 'withheld';
  id: bigint;
  /** merged: the incident that it is part of. */
  into: bigint;
  time: bigint;
  since: bigint;
  rank: number;
  severity: number;
  /** Sensors in it. */
  count: number;
  told: boolean;
  /** A sentence. */
  text: string;
  /** Its sensors, which was first, and so on: PROTOCOL.md. */
  about: Record<string, any>;
  position?: bigint;
}

/** So many were left out: this subscriber read too slowly, or came back too late. */
export interface Gap {
  type: 'gap';
  results: bigint;
  events: bigint;
}

export type Item = Result | Scores | HankelEvent | Incident | Gap;

export interface Sensor {
  name: string;
  detector?: string;
  algorithm?: string;
  derived: boolean;
  state: 'ok' | 'warming' | 'provisional' | 'gap' | 'stale' | 'waiting' | 'unknown';
  time?: number;
  value?: number | null;
  score: number | null;
  samples?: number;
  span?: number;
  first?: number;
  threshold?: { mode: 'fixed' | 'adaptive' | 'off'; of: 'score' | 'evidence'; value?: number; blocks?: number };
  alert?: boolean;
  [further: string]: unknown;
}

export interface ConnectOptions {
  /** HOST:PORT of a binary listener; default 127.0.0.1:7410. */
  address?: string;
  /** Of this program, for the daemon's log. */
  name?: string;
  /** ms that an answer may take; default 10000. */
  timeout?: number;
  /** true: the system's authorities; or options of tls.connect, such as ca, cert, key. */
  tls?: boolean | object;
  token?: string;
  /** Sends the token beyond loopback without TLS, where anyone on the path can read it. */
  tokenInClear?: boolean;
  /** Name of the feed that all points belong to: each counts once, over breaks of the connection and restarts of the daemon. */
  feed?: string;
  /** ms for a daemon that went away to come back, with a feed or subscribed with `since`; default 10000. */
  patience?: number;
}

export interface SubscribeOptions {
  /** Of the sensors' names: * and ?; default: all. */
  glob?: string;
  minScore?: number;
  /** Default true. */
  scores?: boolean;
  unscored?: boolean;
  /** Default true. */
  events?: boolean;
  /** Default true. */
  notices?: boolean;
  values?: boolean;
  /** Position of the last event that is known: 0 for all that the daemon has, -1: none before now. */
  since?: number | bigint;
  sequences?: boolean;
  /** Default true: events have all fields. */
  details?: boolean;
  /** Results come as Scores. */
  columns?: boolean;
  /** What becomes of incidents comes, and events carry theirs, some seconds later. */
  incidents?: boolean;
}

export interface PictureOptions {
  /** Pixels of a row; needed unless the picture is given as rows. */
  width?: number;
  /** Default: when the daemon reads it. */
  time?: Time;
  /** A value is scale * pixel + offset; scale over 0, default 1. */
  scale?: number;
  /** Default 0. */
  offset?: number;
}

export interface Outcome {
  done: boolean;
  text: string;
}

export class HankelError extends Error {
  /** As in PROTOCOL.md. */
  readonly code: number;
}

/**
 * A connection to hankeld. With a feed, or subscribed with `since`, it connects again by itself: points that were not acknowledged are sent
 * again, and events go on after the last one. Else make a new one.
 */
export class Client implements AsyncIterable<Item> {
  private constructor();
  static connect(options?: ConnectOptions): Promise<Client>;
  /** Name and version of the daemon. */
  readonly server: string;
  /** Sensors that the daemon does not take, and why; their points are dropped. */
  readonly refused: Map<string, string>;
  /** Of the feed: how many of its points, from its beginning on, the daemon has for certain. */
  readonly position: bigint;
  /** Position of the last event that came, where subscribed with `since`. */
  readonly eventPosition: bigint;
  /** Called with errors that do not end the connection. */
  onError: ((error: HankelError) => void) | null;

  /** Buffers a point. Await it now and then, so that what the daemon has not taken does not pile up here. */
  send(sensor: string, time: Time, value: number): Promise<void>;
  /** Sends points as columns: one sensor's, or a name for each. */
  sendColumns(sensor: string | readonly string[], times: BigInt64Array | readonly Time[], values: Float64Array | readonly number[]): Promise<void>;
  /**
   * Sends a picture of a camera, behind what is buffered: row by row, or as rows. Uint8Array, Uint16Array, Float16Array and Float32Array go as they
   * are, all else as float32; NaN is a missing pixel. The daemon makes points of its tiles, sensors CAMERA/ROW,COLUMN/max and so on, by its section
   * [pictures NAME]; onError is told why it cannot. In a feed a picture counts as one point, and this waits while more than eight are not acknowledged.
   * Rejects with a RangeError if it is no picture, or longer than the daemon's max_frame.
   */
  sendPicture(camera: string, pixels: ArrayLike<number> | readonly ArrayLike<number>[], options?: PictureOptions): Promise<void>;
  /** Sends what is buffered. */
  flush(): Promise<void>;
  /** Sends what is buffered; the daemon has taken it over then, and acknowledged what is of a feed. */
  sync(): Promise<void>;

  subscribe(options?: SubscribeOptions): Promise<void>;
  unsubscribe(): Promise<void>;
  /** The next item; rejects once the connection has ended and all was read. */
  read(): Promise<Item>;
  [Symbol.asyncIterator](): AsyncGenerator<Item, void, undefined>;

  /** The daemon's counters: PROTOCOL.md, STATUS. */
  status(): Promise<Record<string, any>>;
  sensors(glob?: string): AsyncGenerator<Sensor, void, undefined>;
  reload(): Promise<Outcome>;
  acknowledge(sensor: string, options?: { number?: number; by?: string }): Promise<Outcome>;
  /** 0 seconds end what was begun with this glob. */
  maintain(glob: string, seconds: number, options?: { by?: string }): Promise<Outcome>;
  /** What this machine of a cluster has: PROTOCOL.md, STATUS. undefined: the daemon is of no cluster. */
  cluster(): Promise<Record<string, any> | undefined>;
  /** Before maintenance: this machine of a cluster gives its partitions to others and takes none; waits until it has none. undo: it takes its
   * share again. Rejects if it still has some after `wait` ms; it goes on. */
  drain(options?: { undo?: boolean; by?: string; wait?: number }): Promise<Outcome>;
  /** Has this machine take over a partition; waits until it has it, as drain. Shares stay even, so it may give another one away. */
  move(partition: number, options?: { by?: string; wait?: number }): Promise<Outcome>;
  /** Sends what is buffered, waits until all is scored and the subscription has got what it is owed, and closes. What came can still be read. */
  finish(): Promise<void>;
  /** Closes at once; what is buffered is lost. */
  close(): void;
}

export function level(severity: number): Level;
export const STATES: readonly State[];
export const CHANNELS: readonly Channel[];
export const EVENTS: readonly string[];
export const INCIDENTS: readonly string[];
export const NOVELTIES: readonly string[];
export const REFUSALS: readonly string[];
