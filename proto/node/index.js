// A client of hankeld for Node.js: README.md has examples, index.d.ts documents each call.
import { FeedQueue, feedFrames } from './feed.js';
import { Operations } from './operations.js';
import { open } from './socket.js';
import { BATCH, CHANNELS, EVENTS, HankelError, INCIDENTS, NOVELTIES, NOW, REFUSALS, STATES, TYPE, frame, pixelsOf, put, take, unframe } from './wire.js';

export { CHANNELS, EVENTS, HankelError, INCIDENTS, NOVELTIES, REFUSALS, STATES };

const REGISTER_MOST = 200; // names in a frame
const KEPT = 1 << 16; // points of a feed that may wait for an acknowledgement
const KEPT_PICTURES = 8; // the same, after a picture
const PAUSE = 100; // ms between two attempts to reconnect
const SHUTTING_DOWN = 13, UNKNOWN_HANDLE = 8, SINCE = 32;
const WARNING = 2.5, SEVERE = 3.5;

/** 'notice', 'warning' or 'severe'; 'unknown' for 0. */
export function level(severity) {
  return severity >= SEVERE ? 'severe' : severity >= WARNING ? 'warning' : severity > 0 ? 'notice' : 'unknown';
}

/** Converts a Date, a bigint of ns, or a number of ms like Date.now(), to a bigint of ns since 1970. */
function nanoseconds(time) {
  if (typeof time === 'bigint')
    return time;
  return typeof time === 'number' ? BigInt(Math.round(time * 1000)) * 1000n : BigInt(time.getTime()) * 1000000n;
}

export class Client extends Operations {
  refused = new Map();
  #options;
  #socket = null;
  #timeout;
  #bytes = Buffer.alloc(0);
  #tag = 0;
  #replies = new Map(); // tag -> {type, resolve, reject}
  #maxFrame = 0; // longest payload that the daemon accepts, bytes
  #handles = new Map(); // sensor -> handle
  #asking = new Map(); // sensor -> promise of its handle
  #names = new Map(); // handle of results -> sensor
  #points = [];
  #items = [];
  #readers = []; // waiting for the next item: {resolve, reject}
  #asColumns = false;
  #subscription = null; // {what, minScore, glob}
  #fault = null; // why the connection has ended
  #closed = false; // by our side
  #joined = 0; // the number of connections so far,
  #joining = false; // whether the client is reconnecting,
  #ready = false; // and whether the connection is ready for points of the feed
  #kept = new FeedQueue(this.refused);
  #feeding = Promise.resolve(); // resolves when the last sender of them ends
  #moving = []; // called when points were acknowledged, and when a connection begins or ends

  constructor(options) {
    super((type, reply, payload) => this.#request(type, reply, payload));
    this.#options = options;
    this.#timeout = options.timeout ?? 10000;
    this.server = '';
    this.eventPosition = NOW;
    this.onError = null;
  }

  get position() {
    return this.#kept.position;
  }

  static async connect(options = {}) {
    const client = new Client(options);
    await client.#connect();
    return client;
  }

  async #connect() {
    this.#ready = false;
    this.#joined++;
    const socket = await open(this.#options);
    if (this.#closed) {
      socket.destroy();
      throw this.#fault;
    }
    this.#socket = socket;
    this.#fault = null;
    this.#bytes = Buffer.alloc(0);
    for (const map of [this.#handles, this.#asking, this.#names])
      map.clear();
    const mine = (take) => (what) => (this.#socket === socket ? take(what) : undefined);
    socket.on('data', mine((data) => this.#came(data)));
    socket.on('error', mine((fault) => this.#end(fault)));
    socket.on('close', mine(() => this.#end(new Error('the daemon closed the connection'))));
    const { name = 'hankeld for Node', token = '', feed } = this.#options;
    try {
      ({ server: this.server, maxFrame: this.#maxFrame } = take.welcome(await this.#request(TYPE.HELLO, TYPE.WELCOME, put.hello({ client: name, token }))));
      if (feed !== undefined) {
        const points = take.points(await this.#request(TYPE.FEED, TYPE.FEED_AT, put.feed({ name: feed })));
        this.#kept.resume(points);
      }
      if (this.#subscription)
        await this.#resubscribe();
    } catch (fault) {
      this.#end(fault);
      socket.destroy();
      throw fault;
    }
    this.#ready = true;
    this.#move();
  }

  /** Whether the client can reconnect after this fault without losing anything. */
  #lasts(fault) {
    return !this.#closed && (this.#options.feed !== undefined || (this.#subscription && (this.#subscription.what & SINCE) > 0)) &&
      !(fault instanceof HankelError && fault.code !== SHUTTING_DOWN);
  }

  async #again(fault) {
    const end = Date.now() + (this.#options.patience ?? 10000);
    this.#joining = true;
    while (this.#fault && !this.#closed && Date.now() <= end) {
      await new Promise((resolve) => setTimeout(resolve, PAUSE));
      try {
        await this.#connect();
      } catch (why) {
        fault = why;
      }
    }
    this.#joining = false;
    if (this.#fault)
      this.#giveUp(this.#closed ? this.#fault : fault);
  }

  #giveUp(fault) {
    this.#fault = fault;
    for (const reader of this.#readers.splice(0))
      reader.reject(fault);
    this.#move();
  }

  #move() {
    for (const move of this.#moving.splice(0))
      move();
  }

  close() {
    this.#closed = true;
    this.#end(new Error('the connection was closed'));
    this.#socket?.destroy();
  }

  // --- points ---

  send(sensor, time, value) {
    this.#points.push([sensor, nanoseconds(time), value]);
    return this.#points.length >= BATCH ? this.flush() : Promise.resolve();
  }

  async flush() {
    const points = this.#points;
    this.#points = [];
    if (this.#options.feed !== undefined)
      return this.#keep(points);
    if (points.length > 0)
      await this.#sendColumns(points.map(([sensor]) => sensor), BigInt64Array.from(points, ([, time]) => time), Float64Array.from(points, ([, , value]) => value));
  }

  async sendColumns(sensor, times, values) {
    if (times.length !== values.length || (typeof sensor !== 'string' && sensor.length !== times.length))
      throw new RangeError('the columns are not of one length');
    await this.flush();
    if (this.#options.feed !== undefined)
      return this.#keep(Array.from(times, (time, i) => [typeof sensor === 'string' ? sensor : sensor[i], nanoseconds(time), values[i]]));
    const when = times instanceof BigInt64Array ? times : BigInt64Array.from(times, nanoseconds);
    const what = values instanceof Float64Array ? values : Float64Array.from(values);
    await this.#sendColumns(typeof sensor === 'string' ? new Array(when.length).fill(sensor) : sensor, when, what);
  }

  async sendPicture(camera, pixels, { width, time, scale = 1, offset = 0 } = {}) {
    const picture = { ...pixelsOf(pixels, width), camera, scale, offset, time: time === undefined ? undefined : nanoseconds(time) };
    const payload = Buffer.concat(put.picture(picture)); // a copy: the caller may use its array again
    if (payload.length > this.#maxFrame)
      throw new RangeError(`the picture takes ${payload.length} bytes, and the daemon takes ${this.#maxFrame} at once (max_frame)`);
    await this.flush();
    if (this.#options.feed !== undefined)
      return this.#keep([[null, 0n, payload]], KEPT_PICTURES);
    await this.#write(frame(TYPE.PICTURE, payload));
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

  // --- a feed ---

  #acknowledged(position) {
    this.#kept.acknowledge(position);
    this.#move();
  }

  async #keep(points, most = KEPT) {
    this.#kept.put(points);
    await this.#feedSome(most);
  }

  /** Sends points of the feed, and waits until at most `most` are unacknowledged. */
  async #feedSome(most) {
    for (;;) {
      await this.#back(); // otherwise points would be sent before the feed's position is known
      const before = this.#joined;
      try {
        const sent = this.#feeding.then(() => this.#feedRest());
        this.#feeding = sent.catch(() => {});
        await sent;
        for (const joined = this.#joined; this.#kept.length > most && joined === this.#joined && !this.#fault;)
          await this.#moves(this.#timeout, 'no acknowledgement');
        if (this.#kept.length <= most)
          return;
      } catch (fault) {
        this.#passes(fault, before);
      }
    }
  }

  /** Throws the fault, unless it belongs to an earlier connection, or the client reconnects. before: #joined at the beginning. */
  #passes(fault, before) {
    if (before === this.#joined && (!this.#fault || !(this.#joining || this.#lasts(fault))))
      throw fault;
  }

  /** Waits until the client has reconnected. */
  async #back() {
    while (!this.#ready) {
      if (this.#fault && !this.#joining)
        throw this.#fault;
      await this.#moves();
    }
  }

  /** Waits for #move. */
  #moves(timeout, what) {
    return new Promise((resolve, reject) => {
      const timer = timeout && setTimeout(() => reject(new Error(`${what} within ${timeout} ms`)), timeout);
      this.#moving.push(() => {
        clearTimeout(timer);
        resolve();
      });
    });
  }

  /** Sends the points that were not sent yet. Ends when the connection changes, because a new one sends all points again. */
  async #feedRest() {
    const joined = this.#joined;
    this.#still(joined);
    const rest = this.#kept.unsent;
    let before = this.#kept.unsentPosition; // valid as long as the connection is this one, whatever is acknowledged
    await this.#register(rest.flatMap(([sensor]) => sensor ?? []));
    for (let at = 0; at < rest.length; at += BATCH) {
      this.#still(joined);
      const some = rest.slice(at, at + BATCH), frames = feedFrames(some, before, this.#handles, this.refused);
      this.#kept.sent(some.length);
      before += BigInt(some.length);
      await this.#write(Buffer.concat(frames));
    }
    this.#acknowledged(this.position);
  }

  #still(joined) {
    if (this.#fault)
      throw this.#fault;
    if (joined !== this.#joined || !this.#ready)
      throw new Error('the connection is another one');
  }

  async sync() {
    await this.flush();
    if (this.#options.feed !== undefined)
      return this.#feedSome(0);
    await this.#request(TYPE.PING, TYPE.PONG, put.ping());
  }

  // --- results ---

  async subscribe(options = {}) {
    const { glob = '', minScore = 0, scores = true, unscored = false, events = true, notices = true, values = false, since, sequences = false, details = true, columns = false, incidents = false } = options;
    const what = (scores ? 1 : 0) | (unscored ? 2 : 0) | (events ? 4 : 0) | (notices ? 8 : 0) | (values ? 16 : 0) | (since !== undefined ? 32 : 0) | (sequences ? 64 : 0) | (details ? 384 : 0) |
      (incidents ? 512 : 0);
    this.#asColumns = columns;
    this.eventPosition = since === undefined || BigInt(since) < 0n ? NOW : BigInt(since);
    this.#subscription = { what, minScore, glob };
    await this.#resubscribe();
  }

  async #resubscribe() {
    const position = take.done(await this.#request(TYPE.SUBSCRIBE, TYPE.DONE, put.subscribe({ ...this.#subscription, since: this.eventPosition })));
    if (position !== undefined && this.eventPosition === NOW)
      this.eventPosition = position;
  }

  async unsubscribe() {
    this.#subscription = null;
    await this.#request(TYPE.UNSUBSCRIBE, TYPE.DONE);
  }

  read() {
    if (this.#items.length > 0)
      return Promise.resolve(this.#items.shift());
    if (this.#fault && !this.#joining)
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

  async finish() {
    for (let done = false; !done;) {
      await this.sync();
      const before = this.#joined;
      try {
        await this.#request(TYPE.BYE, TYPE.FAREWELL, put.bye());
        done = true;
      } catch (fault) {
        if (this.#options.feed === undefined)
          throw fault; // points may be lost
        this.#passes(fault, before);
        await this.#back();
      }
    }
    this.close();
  }

  // --- frames ---

  #write(bytes) {
    if (this.#fault)
      return Promise.reject(this.#fault);
    const socket = this.#socket;
    return new Promise((resolve, reject) => socket.write(bytes, (fault) => {
      if (!fault)
        return resolve();
      if (this.#socket === socket)
        this.#end(fault); // before the socket itself reports it, because callers check whether the connection has ended
      reject(fault);
    }));
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
    else if (type === TYPE.ACK)
      this.#acknowledged(take.points(payload));
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
    if (code === UNKNOWN_HANDLE) //: sensors were evicted; they are registered again with their next points
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
    this.#ready = false;
    for (const waiting of this.#replies.values())
      waiting.reject(fault);
    if (this.#joining)
      return; // #again continues
    if (this.#lasts(fault))
      this.#again(fault);
    else
      this.#giveUp(fault);
  }
}
