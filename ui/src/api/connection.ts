/**
 * Whether the socket is open, and how often everything has to be asked again: what happened before a subscription was there
 * nobody tells. The server answers a ping after it has taken up the subscriptions that were sent before it.
 */
import { useSyncExternalStore } from 'react';

export type ConnectionState = 'connecting' | 'live' | 'offline';

const GATHER_MS = 30;

let state: ConnectionState = 'connecting';
let times = 0;
let socket: WebSocket | null = null;
let waiting: ReturnType<typeof setTimeout> | null = null;
const listeners = new Set<() => void>();

function tell(): void {
  for (const listener of listeners) listener();
}

function set(next: ConnectionState): void {
  if (state === next) return;
  state = next;
  tell();
}

export const connection = {
  connecting(): void {
    set('connecting');
  },
  connected(opened: WebSocket): void {
    socket = opened;
    set('live');
    connection.settle();
  },
  closed(): void {
    socket = null;
    set('offline');
  },
  /** Somebody has subscribed: once the server knows, what was missed until then is asked for. */
  settle(): void {
    waiting ??= setTimeout(() => {
      waiting = null;
      if (socket?.readyState === WebSocket.OPEN) socket.send(JSON.stringify({ type: 'ping' }));
    }, GATHER_MS);
  },
  settled(): void {
    times += 1;
    tell();
  },
};

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function useConnection(): ConnectionState {
  return useSyncExternalStore(subscribe, () => state);
}

/** A number that grows each time the server has taken up new subscriptions. */
export function useConnections(): number {
  return useSyncExternalStore(subscribe, () => times);
}
