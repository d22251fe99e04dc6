import { graphql, type ResultOf } from '../api/graphql';

export const OVERVIEW = graphql(`
  query Overview {
    running: executionCounts(by: "status", filter: { status: ["RUNNING"] }) {
      count
    }
    queues {
      queue
      name
      ready
      oldestReadyAt
    }
    waiting {
      kind
      tasks
      nextDueAt
    }
    workers {
      workerId
      alive
    }
    deadLetterDepth {
      depth
      threshold
      alarm
    }
  }
`);

export type Overview = ResultOf<typeof OVERVIEW>;

export const TRENDS = graphql(`
  query Trends($since: DateTime!) {
    RUNNING: executionCounts(by: "hour", filter: { startedFrom: $since, status: ["RUNNING"] }) {
      key
      count
    }
    SUCCEEDED: executionCounts(by: "hour", filter: { startedFrom: $since, status: ["SUCCEEDED"] }) {
      key
      count
    }
    FAILED: executionCounts(by: "hour", filter: { startedFrom: $since, status: ["FAILED"] }) {
      key
      count
    }
    TIMED_OUT: executionCounts(by: "hour", filter: { startedFrom: $since, status: ["TIMED_OUT"] }) {
      key
      count
    }
    ABORTED: executionCounts(by: "hour", filter: { startedFrom: $since, status: ["ABORTED"] }) {
      key
      count
    }
    functionNumbers(since: $since) {
      name
      completed
      failed
      retried
      seconds
    }
  }
`);

export type Trends = ResultOf<typeof TRENDS>;

export const LONGEST = graphql(`
  query Longest {
    executions(first: 6, order: "oldest", filter: { status: ["RUNNING"] }) {
      nodes {
        executionArn
        jobId
        agentName
        executionName
        startDate
        job {
          failed: tasks(state: "failed", first: 1) {
            nodes {
              taskId
              why {
                sentence
              }
            }
          }
          waiting: tasks(state: "waiting", first: 1) {
            nodes {
              taskId
              why {
                sentence
              }
            }
          }
          pending: tasks(state: "pending", first: 1) {
            nodes {
              taskId
              why {
                sentence
              }
            }
          }
          processing: tasks(state: "processing", first: 1) {
            nodes {
              taskId
              why {
                sentence
              }
            }
          }
        }
      }
    }
  }
`);

export const FAILURES = graphql(`
  query Failures($since: DateTime!) {
    executions(first: 5, filter: { status: ["FAILED", "TIMED_OUT"], startedFrom: $since }) {
      nodes {
        executionArn
        jobId
        agentName
        status
        startDate
        stopDate
        job {
          tasks(state: "failed", first: 1) {
            nodes {
              taskId
              error
            }
          }
        }
      }
    }
  }
`);

export type Failure = ResultOf<typeof FAILURES>['executions']['nodes'][number];

export type Running = ResultOf<typeof LONGEST>['executions']['nodes'][number];

/** The task that says most about why an execution goes on and on. */
export function culprit(running: Running): { taskId: string; why: { sentence: string } } | null {
  const { job } = running;
  if (job === null) return null;
  const [found] = [job.failed, job.pending, job.waiting, job.processing].flatMap((tasks) => tasks.nodes);
  return found ?? null;
}
