// Encodes and decodes frames of hankeld's binary protocol (PROTOCOL.md) and their payloads; uses no socket.

export const STATES = Object.freeze(['warming', 'ok', 'gap', 'late', 'rejected', 'provisional']);
export const CHANNELS = Object.freeze(['', 'score', 'change', 'shift', 'group', 'novelty', 'limit']);
export const EVENTS = Object.freeze(['', 'raised', 'corrected', 'cleared', 'stale', 'back', '', 'flapping', 'acknowledged']);
export const NOVELTIES = Object.freeze(['', 'value', 'context', 'shape']);
export const INCIDENTS = Object.freeze(['', 'told', 'update', 'merged', 'closed', 'withheld', 'expected', 'false', 'undone']);
export const REFUSALS = Object.freeze(['', 'not a valid name', 'the daemon is full', 'no detector matches the name',
  'the daemon makes that series itself', 'this peer has as many sensors as one may have']);
export const NOW = 0xffffffffffffffffn; // as a position
export const BATCH = 4096; // points in a frame

export const TYPE = Object.freeze({
  HELLO: 0x01, REGISTER: 0x02, POINTS: 0x03, SUBSCRIBE: 0x04, UNSUBSCRIBE: 0x05, PING: 0x06, STATUS: 0x07, BYE: 0x08, FEED: 0x09, RELOAD: 0x0a, OPERATE: 0x0b, SENSORS: 0x0c, PICTURE: 0x0d,
  WELCOME: 0x81, REGISTERED: 0x82, DONE: 0x84, PONG: 0x86, REPORT: 0x87, FAREWELL: 0x88, FEED_AT: 0x89, RELOADED: 0x8a, OPERATED: 0x8b,
  NAMES: 0x91, SCORES: 0x92, EVENTS: 0x93, GAP: 0x94, ACK: 0x95, INCIDENT: 0x96, ERROR: 0xff,
});

const VERSION = 1;
const HEADER = 16;
const FRAME_MOST = 1 << 20; // bytes of a payload that the server sends

/** The daemon answered with an error frame: `code` as in PROTOCOL.md. */
export class HankelError extends Error {
  constructor(code, message) {
    super(`${message} (error ${code})`);
    this.name = 'HankelError';
    this.code = code;
  }
}

const TABLE = Uint32Array.from({ length: 256 }, (_, n) => {
  for (let bit = 0; bit < 8; bit++)
    n = n & 1 ? (n >>> 1) ^ 0xedb88320 : n >>> 1;
  return n >>> 0;
});

function crc32(bytes, before = 0) {
  let crc = ~before;
  for (let i = 0; i < bytes.length; i++)
    crc = TABLE[(crc ^ bytes[i]) & 0xff] ^ (crc >>> 8);
  return ~crc >>> 0;
}

/** Makes a whole frame. payload: a Buffer, or several. */
export function frame(type, payload = [], tag = 0) {
  const parts = Array.isArray(payload) ? payload : [payload];
  const length = parts.reduce((sum, part) => sum + part.length, 0);
  const bytes = Buffer.allocUnsafe(HEADER + length);
  bytes.write('HK', 0, 'latin1');
  bytes[2] = VERSION;
  bytes[3] = type;
  bytes.writeUInt32LE(length, 4);
  bytes.writeUInt32LE(tag, 8);
  let at = HEADER;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  bytes.writeUInt32LE(crc32(bytes.subarray(HEADER), crc32(bytes.subarray(0, 12))), 12);
  return bytes;
}

/** Takes the whole frames from the front of `bytes`. Returns [frames as {type, tag, payload}, remaining bytes]. Throws if the
 * bytes are no frames. */
export function unframe(bytes) {
  const frames = [];
  let at = 0;
  while (bytes.length - at >= HEADER) {
    const type = bytes[at + 3], length = bytes.readUInt32LE(at + 4);
    if (bytes[at] !== 0x48 || bytes[at + 1] !== 0x4b || (bytes[at + 2] !== VERSION && type !== TYPE.ERROR) || length > FRAME_MOST)
      throw new Error('not a frame of this protocol');
    if (bytes.length - at < HEADER + length)
      break;
    const payload = bytes.subarray(at + HEADER, at + HEADER + length);
    if (bytes.readUInt32LE(at + 12) !== crc32(payload, crc32(bytes.subarray(at, at + 12))))
      throw new Error('a frame was damaged');
    frames.push({ type, tag: bytes.readUInt32LE(at + 8), payload });
    at += HEADER + length;
  }
  return [frames, bytes.subarray(at)];
}

// --- payloads ---------------------------------------------------------------------------------------------------------

/** Writes numbers and strings, one after the other. */
class Writer {
  parts = [];
  #number(size, put) {
    const bytes = Buffer.alloc(size);
    put(bytes);
    this.parts.push(bytes);
    return this;
  }
  u8(x) { return this.#number(1, (b) => b.writeUInt8(x)); }
  u16(x) { return this.#number(2, (b) => b.writeUInt16LE(x)); }
  u32(x) { return this.#number(4, (b) => b.writeUInt32LE(x)); }
  i64(x) { return this.#number(8, (b) => b.writeBigInt64LE(BigInt(x))); }
  u64(x) { return this.#number(8, (b) => b.writeBigUInt64LE(BigInt(x))); }
  f32(x) { return this.#number(4, (b) => b.writeFloatLE(x)); }
  zeros(n) { return this.#number(n, () => {}); }
  string(text) {
    const bytes = Buffer.from(text, 'utf8');
    this.u16(bytes.length).parts.push(bytes);
    return this;
  }
  column(array) {
    this.parts.push(new Uint8Array(array.buffer, array.byteOffset, array.byteLength));
    return this;
  }
}

/** The fields that the marks of an event stand for. */
function marksOf(marks) {
  return { maintenance: (marks & 1) === 1, provisional: (marks & 4) === 4, travels: (marks & 8) === 8 };
}

/** Reads a note: { novelty } or { limit }, by its kind. */
function noteOf(r) {
  const kind = r.bytes[r.at + 38], earliest = r.i64(), latest = r.i64();
  if (kind === 4) {
    const note = { earliest, latest: latest === 2n ** 63n - 1n ? null : latest, reached: r.i64(), limit: r.f64(), slope: r.f32(), blocks: r.u16() };
    r.skip(2);
    return { limit: note };
  }
  const note = { nearest: earliest, oldest: latest, low: r.f64(), high: r.f64(), compared: r.u32(), reach: r.u16(), kind: NOVELTIES[r.u8()] };
  r.skip(1);
  return note.kind ? { novelty: note } : {};
}

class Reader {
  constructor(bytes) {
    this.bytes = bytes;
    this.at = 0;
  }
  skip(n) { return (this.at += n) - n; }
  u8() { return this.bytes.readUInt8(this.skip(1)); }
  u16() { return this.bytes.readUInt16LE(this.skip(2)); }
  u32() { return this.bytes.readUInt32LE(this.skip(4)); }
  u64() { return this.bytes.readBigUInt64LE(this.skip(8)); }
  i64() { return this.bytes.readBigInt64LE(this.skip(8)); }
  f32() { return this.bytes.readFloatLE(this.skip(4)); }
  f64() { return this.bytes.readDoubleLE(this.skip(8)); }
  text(length) {
    const at = this.skip(length);
    return this.bytes.toString('utf8', at, at + length);
  }
  string() { return this.text(this.u16()); }
  /** A column of n numbers; a copy, since the bytes may lie anywhere. */
  column(Kind, n) {
    const at = this.skip(n * Kind.BYTES_PER_ELEMENT), column = new Kind(n);
    new Uint8Array(column.buffer).set(this.bytes.subarray(at, this.at));
    return column;
  }
}

const PIXELS = ['Uint8Array', 'Uint16Array', 'Float16Array', 'Float32Array']; // by the kind of pixels in a picture
const SIDE_MOST = 8192; // pixels

/** Pixels as PICTURE has them: {kind, height, width, pixels}. Other numbers than u8, u16, f16 and f32 become f32. */
export function pixelsOf(given, width) {
  const rows = !ArrayBuffer.isView(given) && typeof given[0] === 'object' ? given : null;
  const across = rows ? rows[0].length : width ?? 0, all = rows ? given.length * across : given.length, height = all / across;
  if (rows && rows.some((row) => row.length !== across))
    throw new RangeError('the rows of the picture are not of one length');
  if (!(Number.isInteger(across) && across >= 1 && across <= SIDE_MOST && height >= 1 && height <= SIDE_MOST && Number.isInteger(height)))
    throw new RangeError(`a picture has whole rows and columns, 1 to ${SIDE_MOST} of each; this one has ${all} pixels, and the width ${rows ? across : width}`);
  const flat = rows ? Float32Array.from({ length: all }, (_, i) => rows[Math.floor(i / across)][i % across]) : given;
  const kind = flat instanceof Uint8ClampedArray ? 0 : PIXELS.indexOf(flat[Symbol.toStringTag]);
  return { kind: kind < 0 ? 3 : kind, height, width: across, pixels: kind < 0 ? Float32Array.from(flat) : flat };
}

/** Writers of the payloads that a client sends. */
export const put = {
  hello: ({ client, token = '', wants = 0 }) => {
    const w = new Writer().string(client);
    return (token || wants ? w.string(token).u32(wants) : w).parts;
  },
  register: (names) => names.reduce((w, name) => w.string(name), new Writer().u32(names.length)).parts,
  feed: ({ name }) => new Writer().string(name).parts,
  points: (handles, times, values, before = 0n) => new Writer().zeros(16).u64(before).u32(handles.length).zeros(4).column(times).column(values).column(handles).parts,
  picture: ({ before = 0n, camera, time = -(2n ** 63n), scale = 1, offset = 0, kind, height, width, pixels }) => {
    const name = Buffer.from(camera, 'utf8');
    return new Writer().u64(before).i64(time).u16(height).u16(width).u8(kind).u8(0).u16(name.length).f32(scale).f32(offset).column(name).zeros((4 - (name.length % 4)) % 4).column(pixels).parts;
  },
  subscribe: ({ what, minScore = 0, glob = '', since }) => {
    const w = new Writer().u32(what).f32(minScore).string(glob);
    return (what & 32 ? w.u64(since) : w).parts;
  },
  ping: (token = 0n) => new Writer().u64(token).parts,
  bye: ({ datagrams = 0n, points = 0n } = {}) => new Writer().u64(datagrams).u64(points).parts,
  operate: ({ what, number = 0, duration = 0n, subject, by = '' }) => new Writer().u8(what).zeros(3).u32(number).u64(duration).string(subject).string(by).parts,
  sensors: ({ after = 0n, limit = 1000, glob = '' }) => new Writer().u64(after).u32(limit).string(glob).parts,
};

/** Readers of the payloads that the server sends. names: a map of handles to sensors. */
export const take = {
  welcome: (payload) => {
    const r = new Reader(payload);
    return { feed: r.u64(), maxFrame: r.u32(), server: r.string() };
  },
  registered: (payload) => {
    const r = new Reader(payload);
    return Array.from({ length: r.u32() }, () => ({ handle: r.u32(), reason: r.u32() }));
  },
  names: (payload, names) => {
    const r = new Reader(payload);
    for (let n = r.u32(); n > 0; n--)
      names.set(r.u32(), r.string());
  },
  points: (payload) => new Reader(payload).u64(), // FEED_AT and ACK of a feed
  done: (payload) => (payload.length > 0 ? new Reader(payload).u64() : undefined),
  gap: (payload) => {
    const r = new Reader(payload);
    return { type: 'gap', results: r.u64(), events: r.u64() };
  },
  error: (payload) => {
    const r = new Reader(payload), code = r.u16(), about = r.u8(), closing = r.u8() === 1;
    return { code, about, closing, message: r.string() };
  },
  outcome: (payload) => ({ done: payload[0] === 1, text: payload.toString('utf8', 1) }),
  report: (payload) => JSON.parse(payload.toString('utf8')),

  incident: (payload) => {
    const r = new Reader(payload), position = r.u64();
    const got = { type: 'incident', id: r.u64(), into: r.u64(), time: r.i64(), since: r.i64(), rank: r.f64(), severity: r.f64(), count: r.u32(), kind: INCIDENTS[r.u8()],
      told: r.u8() === 1, text: r.string(), about: JSON.parse(payload.toString('utf8', r.at)) };
    return position > 0n ? { ...got, position } : got;
  },

  /** Results as columns. */
  scores: (payload, names) => {
    const r = new Reader(payload), n = r.u32(), timeKind = r.u8(), columns = r.u8();
    r.skip(2);
    const base = timeKind > 0 ? r.i64() : 0n, step = timeKind > 1 ? r.i64() : 0n;
    let time = timeKind === 0 ? r.column(BigInt64Array, n) : new BigInt64Array(n).fill(base);
    const value = columns & 1 ? r.column(Float64Array, n) : undefined, sequence = columns & 4 ? r.column(BigUint64Array, n) : undefined;
    const handles = r.column(Uint32Array, n), score = r.column(Float32Array, n), steps = timeKind === 3 ? r.column(Uint32Array, n) : undefined;
    const state = columns & 2 ? r.column(Uint8Array, n) : new Uint8Array(n).fill(1);
    if (timeKind > 1)
      time = time.map((_, i) => base + (steps ? BigInt(steps[i]) : BigInt(i)) * step);
    const place = new Map(), of = [];
    const sensor = handles.map((handle) => {
      if (!place.has(handle))
        place.set(handle, of.push(names.get(handle)) - 1);
      return place.get(handle);
    });
    return { type: 'scores', names: of, sensor, time, value, score, state, sequence };
  },

  events: (payload, names) => {
    const r = new Reader(payload), n = r.u32(), along = r.u32();
    return Array.from({ length: n }, () => {
      const place = along & 1 ? { position: r.u64(), sequence: r.u64() } : {};
      if (along & 8)
        place.incident = r.u64();
      const sensor = names.get(r.u32()), number = r.u32(), kind = EVENTS[r.u8()];
      r.skip(3);
      const event = { type: kind === 'stale' || kind === 'back' ? 'notice' : 'event', sensor, number, kind, score: r.f32(), time: r.i64(), from: r.i64(), instant: r.i64(), before: r.f64(),
        after: r.f64(), ...place };
      const note = along & 4 ? noteOf(r) : {};
      if (along & 2) {
        r.skip(4); // strength, for clients of before
        Object.assign(event, { margin: r.f32(), spreadBefore: r.f32(), spreadAfter: r.f32(), channel: CHANNELS[r.u8()], ...marksOf(r.u8()), severity: r.u16() / 1000,
          held: r.u32(), similar: r.u32(), likeness: r.f32(), similarFrom: r.i64(), by: r.string() });
      }
      if (note.novelty)
        event.novelty = { ...note.novelty, expected: event.before, tolerance: event.spreadBefore };
      if (note.limit)
        event.limit = note.limit;
      return event;
    });
  },
};
