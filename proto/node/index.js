// Client of hankeld for Node.js. See README.md; index.d.ts says what everything is.
import net from 'node:net';
import tls from 'node:tls';

import { CHANNELS, EVENTS, HankelError, INCIDENTS, NOVELTIES, NOW, REFUSALS, STATES, TYPE, frame, put, take, unframe } from './wire.js';

export { CHANNELS, EVENTS, HankelError, INCIDENTS, NOVELTIES, REFUSALS, STATES };

const BATCH = 4096; // points in a frame
const REGISTER_MOST = 200; // names in a frame
const LIST_MOST = 1000; // sensors in an answer
const WARNING = 2.5, SEVERE = 3.5;

/** notice, warning or severe; unknown of 0. */
export function level(severity) {
  return severity >= SEVERE ? 'severe' : severity >= WARNING ? 'warning' : severity > 0 ? 'notice' : 'unknown';
}

function address(text) {
  const at = text.lastIndexOf(':'), host = text.slice(0, Math.max(at, 0)).replace(/^\[|\]$/g, '');
  return { host: host || '127.0.0.1', port: Number(text.slice(at + 1)) };
}

function isLoopback(ip) {
  return ip === '::1' || /^(::ffff:)?127\./.test(ip);
}

/** ns since 1970, as a bigint: of a Date, a bigint of ns, or a number of ms, as Date.now() gives it. */
function nanoseconds(time) {
  if (typeof time === 'bigint')
    return time;
  return typeof time === 'number' ? BigInt(Math.round(time * 1000)) * 1000n : BigInt(time.getTime()) * 1000000n;
}

export class Client {
  #socket;
  #timeout;
  #bytes = Buffer.alloc(0);
  #tag = 0;
  #replies = new Map(); // tag -> {type, resolve, reject}
  #handles = new Map(); // sensor -> handle
  #asking = new Map(); // sensor -> promise of its handle
  #names = new Map(); // handle -> sensor, of results
  #points = [];
  #items = [];
  #readers = []; // of the next item: {resolve, reject}
  #asColumns = false;
  #fault = null; // why the connection has ended

  constructor(socket, timeout) {
    this.#socket = socket;
    this.#timeout = timeout;
    this.refused = new Map();
    this.server = '';
    this.eventPosition = NOW;
    this.onError = null;
    socket.setNoDelay(true);
    socket.on('data', (data) => this.#came(data));
    socket.on('error', (fault) => this.#end(fault));
    socket.on('close', () => this.#end(new Error('the daemon closed the connection')));
  }

  static async connect(options = {}) {
    const { address: where = '127.0.0.1:7410', name = 'hankeld for Node', timeout = 10000, token = '', tokenInClear = false } = options;
    const { host, port } = address(where);
    const secure = options.tls ? { host, port, servername: net.isIP(host) ? '' : host, ...(options.tls === true ? {} : options.tls) } : null;
    const socket = secure ? tls.connect(secure) : net.connect({ host, port });
    await new Promise((resolve, reject) => {
      const timer = setTimeout(() => socket.destroy(new Error(`${where}: no answer within ${timeout} ms`)), timeout);
      socket.once(secure ? 'secureConnect' : 'connect', resolve);
      socket.once('error', reject);
      socket.once('close', () => reject(new Error(`${where}: closed before it was connected`)));
      socket.once(secure ? 'secureConnect' : 'connect', () => clearTimeout(timer));
      socket.once('close', () => clearTimeout(timer));
    });
    if (token && !secure && !tokenInClear && !isLoopback(socket.remoteAddress ?? '')) {
      socket.destroy();
      throw new Error(`${where}: the token was not sent: without TLS anyone on the path can read it. Use tls: true, or tokenInClear: true where you trust all of the network`);
    }
    const client = new Client(socket, timeout);
    try {
      client.server = take.welcome(await client.#request(TYPE.HELLO, TYPE.WELCOME, put.hello({ client: name, token }))).server;
    } catch (fault) {
      client.close();
      throw fault;
    }
    return client;
  }

  close() {
    this.#end(new Error('the connection was closed'));
    this.#socket.destroy();
  }

  // --- points ---

  send(sensor, time, value) {
    this.#points.push([sensor, nanoseconds(time), value]);
    return this.#points.length >= BATCH ? this.flush() : Promise.resolve();
  }

  async flush() {
    const points = this.#points;
    this.#points = [];
    if (points.length > 0)
      await this.#sendColumns(points.map(([sensor]) => sensor), BigInt64Array.from(points, ([, time]) => time), Float64Array.from(points, ([, , value]) => value));
  }

  async sendColumns(sensor, times, values) {
    if (times.length !== values.length || (typeof sensor !== 'string' && sensor.length !== times.length))
      throw new RangeError('the columns are not of one length');
    await this.flush();
    const when = times instanceof BigInt64Array ? times : BigInt64Array.from(times, nanoseconds);
    const what = values instanceof Float64Array ? values : Float64Array.from(values);
    await this.#sendColumns(typeof sensor === 'string' ? new Array(when.length).fill(sensor) : sensor, when, what);
  }

  async #sendColumns(sensors, times, values) {
    await this.#register(sensors);
    if (sensors.some((sensor) => this.refused.has(sensor))) {
      const good = sensors.flatMap((sensor, i) => (this.refused.has(sensor) ? [] : [i]));
      [sensors, times, values] = [good.map((i) => sensors[i]), BigInt64Array.from(good, (i) => times[i]), Float64Array.from(good, (i) => values[i])];
    }
    const handles = Uint32Array.from(sensors, (sensor) => this.#handles.get(sensor) ?? 0xffffffff);
    for (let at = 0; at < handles.length; at += BATCH)
      await this.#write(frame(TYPE.POINTS, put.points(handles.subarray(at, at + BATCH), times.subarray(at, at + BATCH), values.subarray(at, at + BATCH))));
  }

  async #register(sensors) {
    const all = [...new Set(sensors)].filter((sensor) => !this.refused.has(sensor) && !this.#handles.has(sensor));
    const asked = all.filter((sensor) => this.#asking.has(sensor)).map((sensor) => this.#asking.get(sensor));
    const names = all.filter((sensor) => !this.#asking.has(sensor));
    for (let at = 0; at < names.length; at += REGISTER_MOST) {
      const some = names.slice(at, at + REGISTER_MOST);
      const reply = this.#request(TYPE.REGISTER, TYPE.REGISTERED, put.register(some)).then((payload) => {
        take.registered(payload).forEach(({ handle, reason }, i) => {
          if (reason)
            this.refused.set(some[i], REFUSALS[reason] ?? '?');
          else
            this.#handles.set(some[i], handle);
        });
      }).finally(() => some.forEach((sensor) => this.#asking.delete(sensor)));
      some.forEach((sensor) => this.#asking.set(sensor, reply));
      asked.push(reply);
    }
    await Promise.all(asked);
  }

  async sync() {
    await this.flush();
    await this.#request(TYPE.PING, TYPE.PONG, put.ping());
  }

  // --- results ---

  async subscribe(options = {}) {
    const { glob = '', minScore = 0, scores = true, unscored = false, events = true, notices = true, values = false, since, sequences = false, details = true, columns = false, incidents = false } = options;
    const what = (scores ? 1 : 0) | (unscored ? 2 : 0) | (events ? 4 : 0) | (notices ? 8 : 0) | (values ? 16 : 0) | (since !== undefined ? 32 : 0) | (sequences ? 64 : 0) | (details ? 384 : 0) |
      (incidents ? 512 : 0);
    this.#asColumns = columns;
    this.eventPosition = since === undefined || BigInt(since) < 0n ? NOW : BigInt(since);
    const position = take.done(await this.#request(TYPE.SUBSCRIBE, TYPE.DONE, put.subscribe({ what, minScore, glob, since: this.eventPosition })));
    if (position !== undefined && this.eventPosition === NOW)
      this.eventPosition = position;
  }

  async unsubscribe() {
    await this.#request(TYPE.UNSUBSCRIBE, TYPE.DONE);
  }

  read() {
    if (this.#items.length > 0)
      return Promise.resolve(this.#items.shift());
    if (this.#fault)
      return Promise.reject(this.#fault);
    return new Promise((resolve, reject) => this.#readers.push({ resolve, reject }));
  }

  async *[Symbol.asyncIterator]() {
    for (;;) {
      let item;
      try {
        item = await this.read();
      } catch (fault) {
        if (fault instanceof HankelError)
          throw fault;
        return;
      }
      yield item;
    }
  }

  // --- the rest ---

  async status() {
    return take.report(await this.#request(TYPE.STATUS, TYPE.REPORT));
  }

  async *sensors(glob = '') {
    for (let after = 0; after !== undefined;) {
      const part = take.report(await this.#request(TYPE.SENSORS, TYPE.REPORT, put.sensors({ after, limit: LIST_MOST, glob })));
      yield* part.sensors;
      after = part.next;
    }
  }

  async reload() {
    return take.outcome(await this.#request(TYPE.RELOAD, TYPE.RELOADED));
  }

  acknowledge(sensor, { number = 0, by = '' } = {}) {
    return this.#operate({ what: 1, number, subject: sensor, by });
  }

  maintain(glob, seconds, { by = '' } = {}) {
    return this.#operate({ what: seconds > 0 ? 2 : 3, duration: BigInt(Math.round(seconds * 1e9)), subject: glob, by });
  }

  async #operate(what) {
    return take.outcome(await this.#request(TYPE.OPERATE, TYPE.OPERATED, put.operate(what)));
  }

  async finish() {
    await this.flush();
    await this.#request(TYPE.BYE, TYPE.FAREWELL, put.bye());
    this.close();
  }

  // --- frames ---

  #write(bytes) {
    if (this.#fault)
      return Promise.reject(this.#fault);
    return new Promise((resolve, reject) => this.#socket.write(bytes, (fault) => (fault ? reject(fault) : resolve())));
  }

  async #request(type, reply, payload = []) {
    const tag = (this.#tag = (this.#tag % 0xffffffff) + 1);
    let timer;
    const answer = new Promise((resolve, reject) => {
      this.#replies.set(tag, { type: reply, resolve, reject });
      timer = setTimeout(() => reject(new Error(`no answer within ${this.#timeout} ms`)), this.#timeout);
    });
    answer.catch(() => {}); // it may fail before it is awaited
    try {
      await this.#write(frame(type, payload, tag));
      return await answer;
    } finally {
      clearTimeout(timer);
      this.#replies.delete(tag);
    }
  }

  #came(data) {
    if (this.#fault)
      return;
    try {
      const [frames, rest] = unframe(this.#bytes.length > 0 ? Buffer.concat([this.#bytes, data]) : data);
      this.#bytes = rest;
      for (const { type, tag, payload } of frames)
        this.#take(type, tag, payload);
    } catch (fault) {
      this.#end(fault);
      this.#socket.destroy();
    }
  }

  #take(type, tag, payload) {
    if (type === TYPE.NAMES)
      take.names(payload, this.#names);
    else if (type === TYPE.SCORES)
      this.#takeScores(take.scores(payload, this.#names));
    else if (type === TYPE.EVENTS)
      this.#takeEvents(take.events(payload, this.#names));
    else if (type === TYPE.INCIDENT)
      this.#takeEvents([take.incident(payload)]);
    else if (type === TYPE.GAP)
      this.#give(take.gap(payload));
    else if (type === TYPE.ERROR)
      this.#takeError(tag, take.error(payload));
    else
      this.#answer(tag, type, Buffer.from(payload));
  }

  #answer(tag, type, payload) {
    const waiting = this.#replies.get(tag);
    if (waiting?.type === type)
      waiting.resolve(payload);
    else
      waiting?.reject(new Error(`the daemon answered with ${type}`));
  }

  #takeScores(columns) {
    if (this.#asColumns)
      return this.#give(columns);
    for (let i = 0; i < columns.time.length; i++) {
      const result = { type: 'result', sensor: columns.names[columns.sensor[i]], time: columns.time[i], score: Number.isNaN(columns.score[i]) ? null : columns.score[i],
        state: STATES[columns.state[i]] };
      if (columns.value)
        result.value = columns.value[i];
      if (columns.sequence)
        result.sequence = columns.sequence[i];
      this.#give(result);
    }
  }

  #takeEvents(events) {
    for (const event of events) {
      if (event.position)
        this.eventPosition = event.position;
      this.#give(event);
    }
  }

  #takeError(tag, { code, closing, message }) {
    const error = new HankelError(code, message);
    if (closing)
      throw error;
    if (code === 8) // unknown handle: sensors were evicted; they are registered again with their next points
      this.#handles.clear();
    this.#replies.get(tag)?.reject(error);
    this.onError?.(error);
  }

  #give(item) {
    const reader = this.#readers.shift();
    if (reader)
      reader.resolve(item);
    else
      this.#items.push(item);
  }

  #end(fault) {
    if (this.#fault)
      return;
    this.#fault = fault;
    for (const waiting of [...this.#replies.values(), ...this.#readers.splice(0)])
      waiting.reject(fault);
  }
}
