/** A time: a Date, a number of ms since 1970 like Date.now(), or a bigint of ns. Items that the daemon sends have bigints of
 * ns. */
export type Time = Date | number | bigint;
export type State = 'warming' | 'ok' | 'gap' | 'late' | 'rejected' | 'provisional';
export type Channel = '' | 'score' | 'change' | 'shift' | 'group' | 'novelty' | 'limit';
export type Level = 'unknown' | 'notice' | 'warning' | 'severe';

/** The result for one point. */
export interface Result {
  type: 'result';
  sensor: string;
  time: bigint;
  /** Only if subscribed with values. */
  value?: number;
  /** null: the point has no score. */
  score: number | null;
  state: State;
  /** The point's number among its sensor's points; only if subscribed with sequences. */
  sequence?: bigint;
}

/** Results as columns, if subscribed with columns. */
export interface Scores {
  type: 'scores';
  /** Names of sensors, to which the indices in `sensor` refer. */
  names: string[];
  sensor: Uint32Array;
  time: BigInt64Array;
  value?: Float64Array;
  /** NaN: the point has no score. */
  score: Float32Array;
  /** Indices into STATES. */
  state: Uint8Array;
  sequence?: BigUint64Array;
}

/** What is new; of events of the channel novelty. */
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

/** When a trend reaches a limit; of events of the channel limit. */
export interface Limit {
  limit: number;
  /** Units a second; negative if the value falls. */
  slope: number;
  /** When the limit is reached, by the steeper quartile of the slopes, their median, and the gentler quartile; null: never. */
  earliest: bigint;
  reached: bigint;
  latest: bigint | null;
  /** How many of the 24 blocks the trend covers. */
  blocks: number;
}

/** An alert; or a notice that a sensor is silent or back, of which only sensor, kind and time are set. */
export interface HankelEvent {
  type: 'event' | 'notice';
  sensor: string;
  /** The alert's number; sensor and number identify the alert. */
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
  /** The event's position in the daemon's event log, and its number among the sensor's events; only if subscribed with
   * `since`. */
  position?: bigint;
  sequence?: bigint;
  /** The incident to which the event belongs; 0n: none. Only if subscribed with incidents. */
  incident?: bigint;
  /** 0..40; level() names it. This field and those below are missing if subscribed without details. */
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

/** A change of an incident, that is, of alerts of several sensors or algorithms that have one cause. */
export interface Incident {
  type: 'incident';
  /** told: the incident fits into the budget of messages; update: a reported incident is now more severe; withheld: the
   * incident is over and was never reported; expected, false, undone: somebody said so of it. */
  kind: 'told' | 'update' | 'merged' | 'closed' | 'withheld' | 'expected' | 'false' | 'undone';
  id: bigint;
  /** merged: the incident of which it is now part. */
  into: bigint;
  time: bigint;
  since: bigint;
  rank: number;
  severity: number;
  /** The number of its sensors. */
  count: number;
  told: boolean;
  /** The incident as a sentence. */
  text: string;
  /** Its sensors, which of them was first, and so on: PROTOCOL.md. */
  about: Record<string, any>;
  position?: bigint;
}

/** How many results and events were left out, because this subscriber read too slowly or came back too late. */
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
  /** The name of this program, for the daemon's log. */
  name?: string;
  /** The longest wait for an answer, in ms; default 10000. */
  timeout?: number;
  /** true: TLS with the system's authorities; or options of tls.connect, such as ca, cert, key. */
  tls?: boolean | object;
  token?: string;
  /** Sends the token beyond loopback without TLS, where anyone on the path can read it. */
  tokenInClear?: boolean;
  /** The name of the feed of all points: each point counts once, even if the connection breaks or the daemon restarts. */
  feed?: string;
  /** How long the client tries to reconnect, in ms, with a feed or subscribed with `since`; default 10000. */
  patience?: number;
}

export interface SubscribeOptions {
  /** Selects sensors by name, with * and ?; default: all. */
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
  /** The position of the last event that the program has seen. 0: send all events that the daemon has; -1: only new ones. */
  since?: number | bigint;
  sequences?: boolean;
  /** Default true: events have all fields. */
  details?: boolean;
  /** Results come as Scores. */
  columns?: boolean;
  /** Send changes of incidents; events then name their incident, and arrive some seconds later. */
  incidents?: boolean;
}

export interface PictureOptions {
  /** The number of pixels in a row; needed unless the picture is given as rows. */
  width?: number;
  /** Default: the time at which the daemon reads the picture. */
  time?: Time;
  /** A value is scale * pixel + offset; scale must be positive; default 1. */
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
 * A connection to hankeld. With a feed, or subscribed with `since`, the client reconnects by itself: it sends unacknowledged
 * points again, and events continue after the last one. Otherwise make a new client.
 */
export class Client implements AsyncIterable<Item> {
  private constructor();
  static connect(options?: ConnectOptions): Promise<Client>;
  /** Name and version of the daemon. */
  readonly server: string;
  /** Sensors that the daemon refuses, with the reasons; the client drops their points. */
  readonly refused: Map<string, string>;
  /** How many points of the feed, from its beginning on, the daemon has acknowledged. */
  readonly position: bigint;
  /** The position of the last event received, if subscribed with `since`. */
  readonly eventPosition: bigint;
  /** Called with each error that does not end the connection. */
  onError: ((error: HankelError) => void) | null;

  /** Buffers a point. Await the promise now and then, so that the buffer does not grow if the daemon reads slowly. */
  send(sensor: string, time: Time, value: number): Promise<void>;
  /** Sends points as columns, of one sensor or with a name for each point. */
  sendColumns(sensor: string | readonly string[], times: BigInt64Array | readonly Time[], values: Float64Array | readonly number[]): Promise<void>;
  /**
   * Sends a picture of a camera, after the buffered points: as one array of all rows, or as an array of rows. Uint8Array, Uint16Array,
   * Float16Array and Float32Array are sent as they are, others as float32; NaN is a missing pixel. The daemon makes points of its tiles, sensors CAMERA/ROW,COLUMN/max and so on, by its section
   * [pictures NAME]; onError is told why it cannot. In a feed a picture counts as one point, and this waits while more than eight are not acknowledged.
   * Rejects with a RangeError if it is no picture, or longer than the daemon's max_frame.
   */
  sendPicture(camera: string, pixels: ArrayLike<number> | readonly ArrayLike<number>[], options?: PictureOptions): Promise<void>;
  /** Sends the buffered points. */
  flush(): Promise<void>;
  /** Sends the buffered points, and waits until the daemon has taken them over, or acknowledged them if they belong to a feed. */
  sync(): Promise<void>;

  subscribe(options?: SubscribeOptions): Promise<void>;
  unsubscribe(): Promise<void>;
  /** The next item; rejects once the connection has ended and all items were read. */
  read(): Promise<Item>;
  [Symbol.asyncIterator](): AsyncGenerator<Item, void, undefined>;

  /** The daemon's counters: PROTOCOL.md, STATUS. */
  status(): Promise<Record<string, any>>;
  sensors(glob?: string): AsyncGenerator<Sensor, void, undefined>;
  reload(): Promise<Outcome>;
  acknowledge(sensor: string, options?: { number?: number; by?: string }): Promise<Outcome>;
  /** Begins maintenance of the sensors that match; 0 seconds end the maintenance begun with this glob. */
  maintain(glob: string, seconds: number, options?: { by?: string }): Promise<Outcome>;
  /** The state of this machine of a cluster: PROTOCOL.md, STATUS. undefined: the daemon belongs to no cluster. */
  cluster(): Promise<Record<string, any> | undefined>;
  /** Drains this machine of a cluster before maintenance: it gives its partitions to other machines and takes none. Waits
   * until it has none. undo: it takes its share again. Rejects if it still has some after `wait` ms; draining continues. */
  drain(options?: { undo?: boolean; by?: string; wait?: number }): Promise<Outcome>;
  /** Moves a partition to this machine, and waits as drain does. Shares stay even, so the machine may give another partition
   * away. */
  move(partition: number, options?: { by?: string; wait?: number }): Promise<Outcome>;
  /** Sends the buffered points, waits until all are scored and the subscription has received its items, and closes. Received items can
   * still be read. */
  finish(): Promise<void>;
  /** Closes at once; buffered points are lost. */
  close(): void;
}

export function level(severity: number): Level;
export const STATES: readonly State[];
export const CHANNELS: readonly Channel[];
export const EVENTS: readonly string[];
export const INCIDENTS: readonly string[];
export const NOVELTIES: readonly string[];
export const REFUSALS: readonly string[];
