/** One client for a key: queries over HTTP, subscriptions over a socket that comes back by itself. */
import { Client, cacheExchange, fetchExchange, mapExchange, subscriptionExchange } from '@urql/core';
import { createClient as createSocket } from 'graphql-ws';
import { connection } from './connection';
import { refuse } from './session';

const UNAUTHENTICATED = 4401;
const FORBIDDEN = 4403;
/** However long a server was away, whoever looks should soon see that it is back. */
const LONGEST_PAUSE_MS = 8000;

export function makeClient(key: string | null): Client {
  const authorization: Record<string, string> = key === null ? {} : { authorization: `Bearer ${key}` };
  const socket = createSocket({
    url: `${location.protocol === 'https:' ? 'wss' : 'ws'}://${location.host}/graphql`,
    connectionParams: authorization,
    retryAttempts: Infinity,
    retryWait: (times) => pause(Math.min(LONGEST_PAUSE_MS, 500 * 2 ** times)),
    shouldRetry: (event) => !isRefusal(event),
    on: {
      connecting: () => connection.connecting(),
      connected: (opened) => connection.connected(opened as WebSocket),
      pong: (received) => received && connection.settled(),
      closed: (event) => {
        connection.closed();
        if (isRefusal(event)) refuse(key);
      },
    },
  });
  return new Client({
    url: '/graphql',
    fetchOptions: { headers: authorization },
    preferGetMethod: false,
    requestPolicy: 'cache-and-network',
    exchanges: [
      mapExchange({
        onError(error) {
          if (error.response?.status === 401) refuse(key);
        },
      }),
      cacheExchange,
      fetchExchange,
      subscriptionExchange({
        forwardSubscription: (request) => ({
          subscribe: (sink) => ({
            unsubscribe: socket.subscribe({ query: request.query ?? '', variables: request.variables }, sink),
          }),
        }),
      }),
    ],
  });
}

/** Not all browsers at once. */
function pause(most: number): Promise<void> {
  return new Promise((done) => setTimeout(done, most * (0.5 + Math.random() / 2)));
}

function isRefusal(event: unknown): boolean {
  const code = event instanceof CloseEvent ? event.code : 0;
  return code === UNAUTHENTICATED || code === FORBIDDEN;
}
