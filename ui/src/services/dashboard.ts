import { graphql, type ResultOf } from '../api/graphql';
import { JOB_EVENTS } from '../api/live';

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
      queues
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
  query Longest($hourAgo: DateTime!) {
    overdue: executionCounts(by: "status", filter: { status: ["RUNNING"], startedUntil: $hourAgo }) {
      count
    }
    executions(first: 6, order: "oldest", filter: { status: ["RUNNING"] }) {
      nodes {
        executionArn
        jobId
        agentName
        executionName
        startDate
        job {
          failed: tasks(state: "failed", first: 5) {
            nodes {
              taskId
              optional
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
    executions(
      first: 5
      filter: { status: ["FAILED", "TIMED_OUT"], startedFrom: $since, includeEngine: true }
    ) {
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

/** What the menu says beside the names of pages. */
export const BADGES = graphql(`
  query Badges {
    deadLetterDepth {
      depth
      alarm
    }
    waiting {
      kind
      tasks
    }
  }
`);

export const BADGE_EVENTS = {
  types: [...JOB_EVENTS, 'Task Failed', 'Approval Requested', 'Approval Decided', 'Approval Expired'],
};
