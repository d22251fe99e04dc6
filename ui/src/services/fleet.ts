import { graphql, type ResultOf } from '../api/graphql';

export const FLEET = graphql(`
  query Fleet {
    workers {
      workerId
      alive
      startedAt
      expiresAt
      host
      pid
      queues
    }
    functions {
      name
      registeredAt
      timeout
      retry {
        maxAttempts
        baseDelay
        multiplier
        maxDelay
      }
    }
    queues {
      queue
      name
      ready
      oldestReadyAt
    }
  }
`);

export type Fleet = ResultOf<typeof FLEET>;
