/**
 * The key of whoever looks at the pages. It lives in this tab alone, goes out in a header that no other site can make the
 * browser send, and is forgotten when the tab is closed or the server refuses it.
 */
import { useSyncExternalStore } from 'react';

const SLOT = 'ostinato.key';

export interface Session {
  readonly key: string | null;
  /** The server did not take the key, or wants one. */
  readonly refused: boolean;
}

let session: Session = { key: sessionStorage.getItem(SLOT), refused: false };
const listeners = new Set<() => void>();

function change(next: Session): void {
  session = next;
  if (next.key === null) sessionStorage.removeItem(SLOT);
  else sessionStorage.setItem(SLOT, next.key);
  for (const listener of listeners) listener();
}

export function signIn(key: string): void {
  change({ key: key.trim(), refused: false });
}

export function signOut(): void {
  change({ key: null, refused: true });
}

/** Answers to requests with a key that is no longer ours say nothing about the one that is. */
export function refuse(key: string | null): void {
  if (session.key === key && !session.refused) change({ key: session.key, refused: true });
}

export function useSession(): Session {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => session,
  );
}
