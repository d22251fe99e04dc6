/**
 * Whether the socket is open, and how often everything has to be asked again: what happened before a subscription was there
 * nobody tells. The server answers a ping after it has taken up the subscriptions that were sent before it.
 */
import { useSyncExternalStore } from 'react';

export type ConnectionState = 'connecting' | 'live' | 'offline';

const GATHER_MS = 30;
/** A socket that is back sooner than this was never missed. */
const PATIENCE_MS = 2000;

let state: ConnectionState = 'connecting';
let times = 0;
let socket: WebSocket | null = null;
let waiting: ReturnType<typeof setTimeout> | null = null;
let lost = false;
let losing: ReturnType<typeof setTimeout> | null = null;
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
    if (losing !== null) clearTimeout(losing);
    losing = null;
    lost = false;
    set('live');
    connection.settle();
  },
  closed(): void {
    socket = null;
    losing ??= setTimeout(() => {
      lost = true;
      tell();
    }, PATIENCE_MS);
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

/** Whether the server has been out of reach for a while, however often it is tried. */
export function useLost(): boolean {
  return useSyncExternalStore(subscribe, () => lost);
}

/** A number that grows each time the server has taken up new subscriptions. */
export function useConnections(): number {
  return useSyncExternalStore(subscribe, () => times);
}
