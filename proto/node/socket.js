// A socket to the daemon, over TCP or TLS.
import net from 'node:net';
import tls from 'node:tls';

function address(text) {
  const at = text.lastIndexOf(':'), host = text.slice(0, Math.max(at, 0)).replace(/^\[|\]$/g, '');
  return { host: host || '127.0.0.1', port: Number(text.slice(at + 1)) };
}

function isLoopback(ip) {
  return ip === '::1' || /^(::ffff:)?127\./.test(ip);
}

/** A socket that is connected, over TLS if that is wanted. */
export async function open({ address: where = '127.0.0.1:7410', timeout = 10000, token = '', tokenInClear = false, tls: wanted }) {
  const { host, port } = address(where);
  const secure = wanted ? { host, port, servername: net.isIP(host) ? '' : host, ...(wanted === true ? {} : wanted) } : null;
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
  socket.setNoDelay(true);
  return socket;
}
