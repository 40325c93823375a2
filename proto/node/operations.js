// The requests of operators, which the command `hankel` also makes: status, sensors, alerts, maintenance, and machines of a cluster.
import { TYPE, put, take } from './wire.js';

const LIST_MOST = 1000; // sensors in an answer
const MOVING = 300; // ms between two looks whether partitions have moved

/** What a machine says of the last request to move a partition to it. */
const wantedOf = (cluster, partition) => cluster?.wanted?.find(one => one.partition === partition);

export class Operations {
  #request;

  /** request(type, reply, payload): sends a frame, and resolves with the payload of the answer, a frame of type reply. */
  constructor(request) {
    this.#request = request;
  }

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

  async cluster() {
    return (await this.status()).cluster;
  }

  async drain({ undo = false, by = '', wait = 90000 } = {}) {
    const outcome = await this.#operate({ what: undo ? 8 : 7, subject: '', by });
    if (outcome.done && !undo)
      await this.#until(cluster => !cluster?.partitions, wait);
    return outcome;
  }

  async move(partition, { by = '', wait = 90000 } = {}) {
    const outcome = await this.#operate({ what: 9, number: partition, subject: '', by });
    if (outcome.done)
      await this.#until(cluster => this.#hasMoved(cluster, partition), wait, partition);
    return outcome;
  }

  /** Whether a machine has a partition, or had it since it was asked, by its report; throws if the request came to nothing. */
  #hasMoved(cluster, partition) {
    const wanted = wantedOf(cluster, partition);
    if (wanted?.state === 'done' || cluster?.held?.some(held => held.partition === partition))
      return true;
    if (wanted?.state === 'overruled' || wanted?.state === 'over')
      throw new Error(`the partition has not moved: ${wanted.why}`);
    return false;
  }

  /** Asks the machine for its partitions until moved(cluster) is true; rejects after `wait` ms. */
  async #until(moved, wait, partition) {
    const end = performance.now() + wait;
    for (let cluster; !moved(cluster = await this.cluster());) {
      const why = wantedOf(cluster, partition)?.why;
      if (performance.now() > end)
        throw new Error(`the partitions have not moved within ${wait} ms${why ? `: ${why}` : ''}`);
      await new Promise(go => setTimeout(go, MOVING));
    }
  }

  async #operate(what) {
    return take.outcome(await this.#request(TYPE.OPERATE, TYPE.OPERATED, put.operate(what)));
  }
}
