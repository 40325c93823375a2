// The points of a feed, until the daemon has acknowledged them. A point is [sensor, time, value], a picture [null, 0n, payload]; each counts as one.
import { TYPE, frame, put } from './wire.js';

export class FeedQueue {
  position = 0n; // the daemon has so many points of the feed, from its beginning on
  #points = []; // the points after these
  #sent = 0; // so many of them were sent over the present connection
  #refused;

  /** refused: a map with the names of the sensors that the daemon does not take. */
  constructor(refused) {
    this.#refused = refused;
  }

  get length() {
    return this.#points.length;
  }

  /** The position of the first point that is not sent. */
  get unsentPosition() {
    return this.position + BigInt(this.#sent);
  }

  get unsent() {
    return this.#points.slice(this.#sent);
  }

  put(points) {
    for (const point of points)
      this.#points.push(point);
  }

  /** The next n points are sent. */
  sent(n) {
    this.#sent += n;
  }

  /** The daemon has the points before this position. Points of refused sensors are never sent, and need no acknowledgement. */
  acknowledge(position) {
    let n = 0;
    while (n < this.#points.length && (position > this.position || (this.#sent > 0 && this.#refused.has(this.#points[n][0])))) {
      n++;
      this.position++;
      this.#sent -= this.#sent > 0 ? 1 : 0;
    }
    this.#points.splice(0, n);
  }

  /** The connection is a new one, and the daemon has said how many points it has: the others are to be sent again. */
  resume(position) {
    this.acknowledge(position);
    this.position = position > this.position ? position : this.position;
    this.#sent = 0;
  }
}

/**
 * Makes frames of points, the first of which has the position `before`: a frame for each picture, and one for each run of points between
 * points of refused sensors. These are left out: the daemon sees it by the next frame's position.
 */
export function feedFrames(points, before, handles, refused) {
  const frames = [];
  const kind = ([sensor]) => (sensor === null ? 'picture' : refused.has(sensor) ? 'refused' : 'good');
  for (let at = 0; at < points.length;) {
    const what = kind(points[at]);
    let end = at;
    while (end < points.length && kind(points[end]) === what)
      end++;
    const run = points.slice(at, end);
    if (what === 'picture')
      for (const [i, [, , payload]] of run.entries()) {
        payload.writeBigUInt64LE(before + BigInt(at + i));
        frames.push(frame(TYPE.PICTURE, payload));
      }
    else if (what === 'good')
      frames.push(frame(TYPE.POINTS, put.points(Uint32Array.from(run, ([sensor]) => handles.get(sensor) ?? 0xffffffff), BigInt64Array.from(run, ([, time]) => time),
        Float64Array.from(run, ([, , value]) => value), before + BigInt(at))));
    at = end;
  }
  return frames;
}
