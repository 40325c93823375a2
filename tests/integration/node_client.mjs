// Tests of the Node client, run by test_node_client.py and test_delivery.py: `node node_client.mjs vectors FILE`, `... daemon ADDRESS`,
// `... pictures ADDRESS`, or `... delivery ADDRESS POINTS EVENTS LATE`, whose daemon is killed meanwhile.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import net from 'node:net';

import { Client, HankelError, level } from '../../proto/node/index.js';
import { TYPE, frame, pixelsOf, put, take, unframe } from '../../proto/node/wire.js';

const [, , what, argument] = process.argv;
const START = 1600000000000000000n, SECOND = 1000000000n;
let failed = 0, run = 0;

async function test(name, body) {
  let timer;
  const late = new Promise((_, reject) => { timer = setTimeout(() => reject(new Error('it takes too long')), 60000); });
  try {
    await Promise.race([body(), late]);
    console.log(`ok ${++run} - ${name}`);
  } catch (fault) {
    failed++;
    console.log(`not ok ${++run} - ${name}\n${String(fault.stack ?? fault).replace(/^/gm, '  ')}`);
  }
  clearTimeout(timer);
}

// --- vectors ----------------------------------------------------------------------------------------------------------

const number = (x) => BigInt(x ?? 0);

/** Frames that a client sends, from the fields that stand in the vector. */
const sent = {
  [TYPE.HELLO]: (f) => put.hello(f),
  [TYPE.REGISTER]: (f) => put.register(f.names),
  [TYPE.SUBSCRIBE]: (f) => put.subscribe({ what: Number(f.what), minScore: f.min_score, glob: f.glob, since: number(f.since) }),
  [TYPE.UNSUBSCRIBE]: () => [],
  [TYPE.PING]: (f) => put.ping(number(f.token)),
  [TYPE.STATUS]: () => [],
  [TYPE.BYE]: (f) => put.bye({ datagrams: number(f.datagrams), points: number(f.points) }),
  [TYPE.RELOAD]: () => [],
  [TYPE.FEED]: (f) => put.feed(f),
  [TYPE.PICTURE]: (f) => put.picture({ ...f, before: number(f.before), time: number(f.time), pixels: Buffer.from(f.pixels, 'hex') }),
  [TYPE.OPERATE]: (f) => put.operate({ ...f, duration: number(f.duration) }),
  [TYPE.SENSORS]: (f) => put.sensors({ ...f, after: number(f.after) }),
};

const float = (x) => Math.fround(x);

function checkScores(got, f) {
  const n = f.handles.length;
  assert.deepEqual([...got.sensor].map((i) => got.names[i]), f.handles.map((handle) => `s${handle}`));
  assert.deepEqual([...got.time], f.times.map(number));
  assert.deepEqual([...got.score], f.scores.map((x) => (x === null ? NaN : float(x))));
  assert.deepEqual([...got.state], f.states ?? new Array(n).fill(1));
  assert.deepEqual(got.value && [...got.value], f.values);
  assert.deepEqual(got.sequence && [...got.sequence], f.sequences?.map(number));
}

const EVENT = { number: 'number', score: 'score', before: 'before', after: 'after', severity: 'severity', margin: 'margin', spreadBefore: 'spread_before', spreadAfter: 'spread_after', held: 'held',
  similar: 'similar', likeness: 'likeness', by: 'by' };

function checkEvents(got, f) {
  assert.equal(got.length, f.events.length);
  got.forEach((event, i) => {
    const want = f.events[i];
    assert.equal(event.sensor, `s${want.handle}`);
    for (const [mine, its] of Object.entries(EVENT))
      if (event[mine] !== undefined)
        assert.ok(event[mine] === want[its] || Math.abs(event[mine] - want[its]) <= 1e-6 * Math.abs(want[its]), `${mine}: ${event[mine]}, not ${want[its]}`);
    for (const [mine, its] of [['time', 'time'], ['from', 'from'], ['instant', 'instant'], ['position', 'position'], ['sequence', 'sequence'], ['similarFrom', 'similar_from']])
      if (event[mine] !== undefined)
        assert.equal(event[mine], number(want[its]), mine);
    assert.equal('position' in event, (f.with & 1) > 0);
    assert.deepEqual(event.incident, f.with & 8 ? number(want.incident) : undefined);
    assert.equal('severity' in event, (f.with & 2) > 0);
    if (f.with & 2)
      assert.deepEqual([event.maintenance, event.provisional, event.travels], [(want.marks & 1) === 1, (want.marks & 4) === 4, (want.marks & 8) === 8]);
    assert.equal(event.limit !== undefined, want.blocks !== undefined);
    if (want.blocks) {
      assert.deepEqual([event.limit.earliest, event.limit.reached], [number(want.earliest), number(want.reached)]);
      assert.equal(event.limit.latest, number(want.latest) === 2n ** 63n - 1n ? null : number(want.latest));
      assert.deepEqual([event.limit.limit, event.limit.blocks, event.limit.slope], [want.limit, want.blocks, want.slope]);
    }
    if (f.with & 4 && want.novelty) {
      assert.deepEqual([event.novelty.nearest, event.novelty.oldest], [number(want.nearest), number(want.oldest)]);
      assert.deepEqual([event.novelty.low, event.novelty.high, event.novelty.compared, event.novelty.reach], [want.low, want.high, want.compared, want.reach]);
    }
  });
}

/** Checks of what the client makes of frames that a daemon sends, with the fields that stand in the vector. */
const came = {
  [TYPE.WELCOME]: (payload, f) => assert.deepEqual(take.welcome(payload), { feed: number(f.feed), maxFrame: f.max_frame, server: f.server }),
  [TYPE.REGISTERED]: (payload, f) => assert.deepEqual(take.registered(payload), f.handles.map((handle, i) => ({ handle, reason: f.reasons[i] }))),
  [TYPE.NAMES]: (payload, f) => {
    const names = new Map();
    take.names(payload, names);
    assert.deepEqual([...names], f.handles.map((handle, i) => [handle, f.names[i]]));
  },
  [TYPE.DONE]: (payload, f) => assert.equal(take.done(payload), f?.since === undefined ? undefined : number(f.since)),
  [TYPE.SCORES]: (payload, f, names) => checkScores(take.scores(payload, names), f),
  [TYPE.EVENTS]: (payload, f, names) => checkEvents(take.events(payload, names), f),
  [TYPE.INCIDENT]: (payload, f) => assert.deepEqual(take.incident(payload), { type: 'incident', id: number(f.id), into: number(f.into), time: number(f.time), since: number(f.since),
    rank: f.rank, severity: f.severity, count: f.count, kind: ['', 'told', 'update', 'merged', 'closed', 'withheld', 'expected', 'false', 'undone'][f.kind], told: f.told === 1, text: f.text, about: JSON.parse(f.about),
    position: number(f.position) }),
  [TYPE.FEED_AT]: (payload, f) => assert.equal(take.points(payload), number(f.points)),
  [TYPE.ACK]: (payload, f) => assert.equal(take.points(payload), number(f.points)),
  [TYPE.GAP]: (payload, f) => assert.deepEqual(take.gap(payload), { type: 'gap', results: number(f.results), events: number(f.events) }),
  [TYPE.ERROR]: (payload, f) => assert.deepEqual(take.error(payload), { code: f.code, about: f.type, closing: f.closing === 1, message: f.message }),
  [TYPE.REPORT]: (payload, f) => assert.deepEqual(take.report(payload), JSON.parse(f.text)),
  [TYPE.RELOADED]: (payload, f) => assert.deepEqual(take.outcome(payload), { done: f.taken === 1, text: f.text }),
  [TYPE.OPERATED]: (payload, f) => assert.deepEqual(take.outcome(payload), { done: f.taken === 1, text: f.text }),
};

async function vectors(file) {
  const { frames } = JSON.parse(fs.readFileSync(file, 'utf8'));
  const names = new Map();
  for (const { fields: f } of frames)
    for (const handle of [...(f?.handles ?? []), ...(Array.isArray(f?.events) ? f.events : []).map((event) => event.handle)])
      names.set(handle, `s${handle}`);
  const read = new Set(), written = new Set();
  for (const { name, type, tag, fields: f, bytes } of frames) {
    const golden = Buffer.from(bytes.join(''), 'hex');
    await test(name, () => {
      const [[got], rest] = unframe(golden);
      assert.deepEqual([got.type, got.tag, rest.length], [type, tag, 0]);
      assert.deepEqual(frame(type, got.payload, tag), golden);
      if (sent[type]) {
        assert.equal(frame(type, sent[type](f), tag).toString('hex'), golden.toString('hex'));
        written.add(type);
      }
      read.add(type);
      came[type]?.(got.payload, f, names);
      if (type === TYPE.POINTS && f.time_kind === 0 && f.value_kind === 0 && !number(f.feed)) {
        const points = put.points(Uint32Array.from(f.handles), BigInt64Array.from(f.times, number), Float64Array.from(f.values), number(f.before));
        assert.equal(frame(type, points, tag).toString('hex'), golden.toString('hex'));
        written.add(type);
      }
    });
  }
  await test('every type that is spoken has a vector', () => {
    for (const [name, type] of Object.entries(TYPE))
      assert.ok(read.has(type), name);
    for (const type of Object.keys(sent).map(Number))
      assert.ok(written.has(type), String(type));
    assert.ok(written.has(TYPE.POINTS));
  });
  await misfits(frames);
}

/** What is no frame, or no picture. */
async function misfits(frames) {
  await test('pixels as they are, or as f32', () => {
    assert.deepEqual(pixelsOf([[1, NaN, 3], [4, 5, 6]]), { kind: 3, height: 2, width: 3, pixels: Float32Array.of(1, NaN, 3, 4, 5, 6) });
    assert.deepEqual([new Uint8ClampedArray(4), Buffer.alloc(4), new Uint16Array(4), new Int16Array(4), [1, 2, 3, 4]].map((given) => pixelsOf(given, 2).kind), [0, 0, 1, 3, 3]);
    if (globalThis.Float16Array)
      assert.equal(pixelsOf(new globalThis.Float16Array(4), 2).kind, 2);
  });
  await test('what is damaged, or no frame, is refused', () => {
    const golden = Buffer.from(frames[0].bytes.join(''), 'hex');
    for (let i = 0; i < golden.length; i++) {
      const bad = Buffer.from(golden);
      bad[i] ^= 4;
      let got = [];
      assert.ok((() => { try { [got] = unframe(bad); } catch { return true; } return got.length === 0; })(), `byte ${i}`);
    }
    assert.deepEqual(unframe(golden.subarray(0, golden.length - 1))[0], []);
  });
}

// --- a daemon ---------------------------------------------------------------------------------------------------------

const value = (k) => Math.sin(k) + (k >= 40 ? 50 : 0);

async function collect(client, n, more = () => true) {
  const items = [];
  while (items.length < n) {
    const item = await client.read();
    if (more(item))
      items.push(item);
  }
  return items;
}

async function daemon(address) {
  const connect = (options = {}) => Client.connect({ address, ...options });
  await test('points, results and alerts', async () => {
    const [watcher, client] = [await connect(), await connect()];
    assert.match(client.server, /^hankeld /);
    await watcher.subscribe({ glob: 'warm 1', unscored: true, values: true });
    for (let k = 0; k < 60; k++)
      client.send('warm 1', START + BigInt(k) * SECOND, value(k));
    await client.sync();
    const items = await collect(watcher, 61);
    const results = items.filter((item) => item.type === 'result'), alerts = items.filter((item) => item.type === 'event');
    assert.deepEqual(results.map((r) => r.value), Array.from({ length: 60 }, (_, k) => value(k)).slice(0, results.length));
    assert.deepEqual(results.map((r) => r.time), results.map((_, k) => START + BigInt(k) * SECOND));
    assert.ok(results.slice(0, 22).every((r) => r.state === 'warming' && r.score === null));
    assert.ok(results.slice(22).every((r) => r.state === 'ok' && r.score >= 0 && r.score <= 1));
    assert.equal(alerts[0].kind, 'raised');
    assert.equal(alerts[0].channel, 'score');
    assert.equal(alerts[0].maintenance, false);
    assert.equal(level(alerts[0].severity), 'notice');
    await client.finish();
    watcher.close();
  });
  await test('columns in and out', async () => {
    const [watcher, client] = [await connect(), await connect()];
    await watcher.subscribe({ glob: 'warm 2*', unscored: true, values: true, columns: true });
    const n = 10000, times = BigInt64Array.from({ length: n }, (_, k) => START + BigInt(k) * SECOND), values = Float64Array.from({ length: n }, (_, k) => value(k));
    await client.sendColumns('warm 2', times, values);
    await client.sendColumns(['warm 2a', 'cold', 'warm 2b'], [new Date(0), 5, 7], [1, 2, 3]);
    await client.sync();
    assert.deepEqual([...client.refused], [['cold', 'no detector matches the name']]);
    await assert.rejects(client.sendColumns('warm 2', times, [1]), RangeError);
    const got = new Map();
    for (let count = 0; count < n + 2;) {
      const item = await watcher.read();
      if (item.type !== 'scores')
        continue;
      count += item.time.length;
      item.sensor.forEach((of, i) => {
        const name = item.names[of];
        got.set(name, [...(got.get(name) ?? []), [item.time[i], item.value[i], item.state[i]]].slice(-n));
      });
    }
    assert.deepEqual(got.get('warm 2a'), [[0n, 1, 0]]);
    assert.deepEqual(got.get('warm 2b'), [[7000000n, 3, 0]]);
    assert.equal(got.get('warm 2').length, n);
    assert.ok(got.get('warm 2').every(([time, x], k) => time === times[k] && x === values[k]));
    watcher.close();
    client.close();
  });
  await operators(connect);
  await troubles(connect);
}

async function operators(connect) {
  await test('what operators ask for', async () => {
    const client = await connect();
    const sensors = [];
    for await (const sensor of client.sensors('warm 1'))
      sensors.push(sensor);
    assert.deepEqual(sensors.map((s) => [s.name, s.state]), [['warm 1', 'ok']]);
    const [status, outcome, window, reloaded] = await Promise.all([client.status(), client.acknowledge('nobody'), client.maintain('warm 3*', 60, { by: 'anna' }), client.reload()]);
    assert.equal(status.points.in, 10062);
    assert.deepEqual([outcome.done, window.done, reloaded.done], [false, true, true]);
    assert.match(outcome.text, /there is no sensor nobody/);
    client.close();
  });
  await test('maintenance is told without being asked for', async () => {
    const [watcher, client] = [await connect(), await connect()];
    await watcher.subscribe({ glob: 'warm 3', scores: false });
    const now = BigInt(Math.floor(Date.now() / 1000) - 10) * SECOND;
    for (let k = 0; k < 42; k++)
      client.send('warm 3', now + BigInt(k) * SECOND, value(k));
    await client.sync();
    const [alert] = await collect(watcher, 1, (item) => item.type === 'event');
    assert.deepEqual([alert.kind, alert.maintenance], ['raised', true]);
    watcher.close();
    client.close();
  });
}

async function troubles(connect) {
  await test('errors', async () => {
    const client = await connect();
    await assert.rejects(client.subscribe({ minScore: 7 }), (fault) => fault instanceof HankelError && fault.code === 9);
    client.close();
    await assert.rejects(client.status(), /the connection was closed/);
    await assert.rejects(client.read(), /the connection was closed/);
    await assert.rejects(Client.connect({ address: '127.0.0.1:1' }), /ECONNREFUSED/);
  });
  await test('a peer that is no daemon', async () => {
    const server = net.createServer((socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n')).listen(0, '127.0.0.1');
    await new Promise((resolve) => server.once('listening', resolve));
    await assert.rejects(Client.connect({ address: `127.0.0.1:${server.address().port}` }), /not a frame of this protocol/);
    server.close();
  });
  await test('one that asks for several sensors at a time', async () => {
    const client = await connect();
    await Promise.all(Array.from({ length: 50 }, (_, i) => client.sendColumns(Array.from({ length: 300 }, (_, k) => `warm 4 ${k}`), new Array(300).fill(START + BigInt(i)), new Array(300).fill(i))));
    await client.sync();
    assert.equal((await client.status()).sensors.count, 5 + 300);
    client.close();
  });
}

/** A picture of 16 x 24 pixels, of which tile r,i (8 x 8) has the greatest value 10 r + i + k. */
const picture = (k) => Array.from({ length: 16 }, (_, r) => Array.from({ length: 24 }, (__, i) => (r % 8 === 3 && i % 8 === 5 ? 10 * Math.floor(r / 8) + Math.floor(i / 8) + k : 0)));

/** Their results, by tile and time, each once. */
async function tilesOf(watcher, n) {
  const got = new Map();
  for (const { sensor, time, value: of } of await collect(watcher, n, (item) => item.type === 'result')) {
    const key = `${sensor} at ${(time - START) / SECOND}`;
    assert.ok(!got.has(key), key);
    got.set(key, of);
  }
  return got;
}

const expected = (camera, k, scale = 1, offset = 0) => Array.from({ length: 6 }, (_, t) => [`${camera}/${Math.floor(t / 3)},${t % 3}/max at ${k}`, scale * (10 * Math.floor(t / 3) + (t % 3) + k) + offset]);

async function pictures(address) {
  await test('pictures of each kind', async () => {
    const [watcher, client] = await Promise.all([Client.connect({ address }), Client.connect({ address })]);
    const flat = (Kind, k) => Kind.from(picture(k).flat()), faults = [];
    client.onError = (fault) => faults.push(fault);
    await watcher.subscribe({ glob: 'oven 1/*', unscored: true, values: true });
    await client.sendPicture('oven 1', picture(0), { time: START });
    await client.sendPicture('oven 1', flat(Uint8Array, 1), { width: 24, time: START + SECOND });
    await client.sendPicture('oven 1', flat(Uint16Array, 2), { width: 24, time: START + 2n * SECOND, scale: 0.5, offset: -273.25 });
    await client.sendPicture('oven 1', flat(Float32Array, 3), { width: 24, time: Number(START / 1000000n) + 3000 });
    await client.sendPicture('oven 1', flat(Float64Array, 4), { width: 24, time: new Date(Number(START / 1000000n) + 4000) });
    await client.sendPicture('oven 1', picture(5).flat(), { width: 24, time: START + 5n * SECOND });
    await client.sendPicture('door', picture(6));
    await client.sync();
    assert.deepEqual(await tilesOf(watcher, 36), new Map([0, 1, 2, 3, 4, 5].flatMap((k) => expected('oven 1', k, ...(k === 2 ? [0.5, -273.25] : [])))));
    assert.deepEqual(faults.map((fault) => fault.code), [17]);
    assert.match(faults[0].message, /picture of door: no \[pictures NAME\] section/);
    for (const [pixels, options] of [[[[1, 2], [3]], {}], [[], {}], [[[]], {}], [new Uint8Array(7), { width: 2 }], [new Uint8Array(8), {}], [new Float32Array(8193), { width: 8193 }]])
      await assert.rejects(client.sendPicture('oven 1', pixels, options), RangeError);
    await assert.rejects(client.sendPicture('oven 1', new Float32Array(1 << 20), { width: 1024 }), /max_frame/);
    watcher.close();
    client.close();
  });
  await test('pictures of a feed, over connections that break', async () => {
    const { host, port } = { host: address.slice(0, address.lastIndexOf(':')), port: Number(address.slice(address.lastIndexOf(':') + 1)) }, through = new Set();
    const relay = net.createServer((near) => {
      const far = net.connect({ host, port });
      near.pipe(far).pipe(near);
      for (const socket of [near, far])
        socket.on('error', () => {}).on('close', () => { near.destroy(); far.destroy(); });
      through.add(near);
    }).listen(0, '127.0.0.1');
    await new Promise((resolve) => relay.once('listening', resolve));
    const watcher = await Client.connect({ address });
    await watcher.subscribe({ glob: 'oven 2/*', unscored: true, values: true });
    const client = await Client.connect({ address: `127.0.0.1:${relay.address().port}`, feed: 'ovens', patience: 60000 });
    const pixels = new Float32Array(16 * 24); // used again for each picture
    const n = 30;
    for (let k = 0; k < n; k++) {
      pixels.set(picture(k).flat());
      const sent = client.sendPicture('oven 2', pixels, { width: 24, time: START + BigInt(k) * SECOND });
      client.send('oven 2/door', START + BigInt(k) * SECOND, k);
      if (k % 7 === 3)
        for (const socket of through)
          socket.destroy();
      await sent;
    }
    await client.sendPicture('door', picture(0)); // refused, and counted
    await client.sync();
    assert.equal(client.position, BigInt(2 * n + 1));
    const got = await tilesOf(watcher, 7 * n);
    for (const [key, of] of Array.from({ length: n }, (_, k) => [...expected('oven 2', k), [`oven 2/door at ${k}`, k]]).flat())
      assert.equal(got.get(key), of, key);
    client.close();
    watcher.close();
    relay.close();
  });
}

// --- over restarts ----------------------------------------------------------------------------------------------------

/** Points of four sensors, as test_delivery.py makes them, by one feed; then so many late ones. Prints how far the feed is, and the events. */
async function delivery(address, [points, events, late]) {
  const level = (sensor, n) => 10 * (Math.floor(n / (30 + sensor)) % 2) + ((n * 7 + sensor) % 5) * 0.125;
  const from = 1600000000000000000n;
  const watcher = await Client.connect({ address, timeout: 60000, patience: 60000 });
  const feeder = await Client.connect({ address, timeout: 60000, patience: 60000, feed: 'node' });
  await watcher.subscribe({ glob: 'sensor*', scores: false, notices: false, since: 0 });
  assert.equal(feeder.position, 0n);
  let then = '';
  const shown = setInterval(() => { // where it stands, if it does not go on
    const now = `position ${feeder.position}, events up to ${watcher.eventPosition}`;
    if (now === then)
      console.error(now);
    then = now;
  }, 60000);
  console.log('connected');
  const read = collect(watcher, events);
  for (let n = 0; n < points; n++) {
    for (let s = 0; s < 4; s++) {
      await feeder.send(`sensor ${s}`, from + BigInt(n) * SECOND, level(s, n));
      await feeder.send('nobody wants it', from, 1);
    }
    if (n % 20 === 0)
      await (n % 100 === 0 ? feeder.sync() : feeder.flush());
    await new Promise((resolve) => setTimeout(resolve, 4));
  }
  await feeder.sync();
  console.log(String(feeder.position));
  await feeder.sendColumns('sensor 0', new Array(late).fill(from), new Array(late).fill(1)); // killed while these are on their way
  console.log(String(feeder.position));
  await feeder.sync();
  console.log(String(feeder.position));
  for (const event of await read)
    console.log(JSON.stringify([`${event.sensor}:${event.number}`, event.kind, String(event.time), String(event.instant), Number(event.position)]));
  await new Promise((resolve) => process.stdin.once('data', resolve));
  const finished = feeder.finish(); // killed while the daemon has not answered
  console.log('leaving');
  await finished;
  clearInterval(shown);
  watcher.close();
  process.exit(0);
}

if (what === 'delivery')
  await delivery(argument, process.argv.slice(4).map(Number));
await { vectors, daemon, pictures }[what](argument);
console.log(`1..${run}`);
process.exit(failed > 0 ? 1 : 0);
