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
    retention {
      jobs
      keys
    }
  }
`);

export const SET_RETENTION = graphql(`
  mutation SetRetention($jobs: Float, $keys: Float) {
    setRetention(jobs: $jobs, keys: $keys) {
      jobs
      keys
    }
  }
`);

export type Fleet = ResultOf<typeof FLEET>;
