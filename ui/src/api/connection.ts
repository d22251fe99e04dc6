/** Whether the socket is open, and how often it has been: what was missed in between is asked for again. */
import { useSyncExternalStore } from 'react';

export type ConnectionState = 'connecting' | 'live' | 'offline';

let state: ConnectionState = 'connecting';
let times = 0;
const listeners = new Set<() => void>();

function tell(): void {
  for (const listener of listeners) listener();
}

export const connection = {
  set(next: ConnectionState): void {
    if (state !== next) {
      state = next;
      tell();
    }
  },
  connected(): void {
    state = 'live';
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

/** A number that grows each time the socket is opened. */
export function useConnections(): number {
  return useSyncExternalStore(subscribe, () => times);
}
