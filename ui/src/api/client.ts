/** One client for a key: queries over HTTP, subscriptions over a socket that comes back by itself. */
import { Client, cacheExchange, fetchExchange, mapExchange, subscriptionExchange } from '@urql/core';
import { createClient as createSocket } from 'graphql-ws';
import { connection } from './connection';
import { refuse } from './session';

const UNAUTHENTICATED = 4401;
const FORBIDDEN = 4403;

export function makeClient(key: string | null): Client {
  const authorization: Record<string, string> = key === null ? {} : { authorization: `Bearer ${key}` };
  const socket = createSocket({
    url: `${location.protocol === 'https:' ? 'wss' : 'ws'}://${location.host}/graphql`,
    connectionParams: authorization,
    retryAttempts: Infinity,
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

function isRefusal(event: unknown): boolean {
  const code = event instanceof CloseEvent ? event.code : 0;
  return code === UNAUTHENTICATED || code === FORBIDDEN;
}
