// What of the daemon itself is wrong: what `hankel status` says behind WRONG.
import type { Status } from './api';

const UNSAFE = ['failing', 'degraded', 'recovering']; // of durability

/** The gravest first; none: all is as it should be. */
export function faults(s: Status): string[] {
  const { batches, device, durability, configuration, points, sensors, cluster } = s, of: string[] = [];
  const broker = [cluster, cluster?.publishing].find(c => c && ['failing', 'blocked'].includes(c.state));
  if (batches.stalled_s > 0) of.push(`scoring has stalled for ${batches.stalled_s} s: ${batches.stalled_because ?? ''}`);
  if (device.state === 'lost') of.push(`the device is lost (${device.why ?? ''}), scoring on ${s.backend}`);
  if (UNSAFE.includes(durability.state)) of.push(`durability is ${durability.state}: ${durability.why ?? ''}`);
  if (configuration.state === 'refused') of.push(`the configuration was refused: ${configuration.why ?? ''}`);
  if (points.late_sensor) of.push(`most points are late and ignored, all of sensor ${points.late_sensor}: look at the sender's clock`);
  if (sensors.refused_because) of.push(`no room for sensors: ${sensors.refused_because}`);
  for (const c of s.security?.certificates ?? []) if (c.state === 'expired' || c.crl === 'expired') of.push(`the certificate of listener ${c.name}, or its list of revoked ones, has expired`);
  for (const r of s.notify) if (r.state === 'failing') of.push(`alerts do not reach receiver ${r.name}: ${r.answer ?? ''}`);
  if (broker) of.push(`the broker of the cluster ${broker.state === 'failing' ? 'is unreachable' : 'takes no messages'}: ${broker.why}`);
  for (const b of s.mqtt) if (b.state === 'failing') of.push(`the broker ${b.name} is unreachable: ${b.why ?? ''}`);
  return of;
}
