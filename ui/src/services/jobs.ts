import { graphql, type ResultOf } from '../api/graphql';

export const JOB = graphql(`
  query Job($jobId: ID!) {
    job(jobId: $jobId) {
      jobId
      name
      state
      priority
      requestId
      correlationId
      tags
      createdAt
      finishedAt
      failureDetectedAt
      deadlineAt
      totalTasks
      taskStatuses
    }
  }
`);

export type Job = NonNullable<ResultOf<typeof JOB>['job']>;

export const TASKS = graphql(`
  query Tasks($jobId: ID!, $first: Int!, $after: String, $state: String) {
    job(jobId: $jobId) {
      tasks(first: $first, after: $after, state: $state) {
        nodes {
          taskId
          name
          state
          attempt
          position
          optional
          dependsOn
          error
          startedAt
          finishedAt
        }
        pageInfo {
          hasNextPage
          endCursor
        }
      }
    }
  }
`);

export const EVENTS = graphql(`
  query EventsOfJob($jobId: ID!, $first: Int!, $after: String) {
    job(jobId: $jobId) {
      events(first: $first, after: $after) {
        nodes {
          seq
          type
          at
          taskId
          attempt
          properties
        }
        pageInfo {
          hasNextPage
          endCursor
        }
      }
    }
  }
`);

export const TASK = graphql(`
  query Task($jobId: ID!, $taskId: ID!) {
    task(jobId: $jobId, taskId: $taskId) {
      taskId
      name
      state
      attempt
      queue
      priority
      optional
      onDependencyFailure
      error
      startedAt
      finishedAt
      why {
        code
        sentence
        details
      }
      detail {
        dependsOn
        waitsFor
        moreSteps
        attempts {
          key
          attempt
          outcome
          startedAt
          endedAt
          error
          worker
        }
        steps {
          key
          recordedAt
          size
        }
      }
    }
  }
`);

/** What went in and came out may be large: it is only asked for when the task has moved on. */
export const PAYLOADS = graphql(`
  query Payloads($jobId: ID!, $taskId: ID!) {
    task(jobId: $jobId, taskId: $taskId) {
      detail {
        input
        output
      }
    }
  }
`);

export const STEP_OUTPUTS = graphql(`
  query StepOutputs($jobId: ID!, $taskId: ID!) {
    task(jobId: $jobId, taskId: $taskId) {
      detail {
        steps {
          key
          output
        }
      }
    }
  }
`);

export type Task = NonNullable<ResultOf<typeof TASK>['task']>;

export const RESUME = graphql(`
  mutation Resume($jobId: ID!, $inputs: JSON, $dryRun: Boolean!) {
    resume(jobId: $jobId, inputs: $inputs, dryRun: $dryRun) {
      rerun
      reused
      waiting
      undone
      undoneBy
    }
  }
`);

export type ResumePlan = ResultOf<typeof RESUME>['resume'];

export const CANCEL = graphql(`
  mutation Cancel($jobId: ID!, $reason: String) {
    cancel(jobId: $jobId, reason: $reason)
  }
`);

export const JOB_STATE = graphql(`
  query JobState($jobId: ID!) {
    job(jobId: $jobId) {
      state
    }
  }
`);

export const RETRY = graphql(`
  mutation Retry($jobId: ID!, $taskId: ID!, $input: JSON) {
    retry(jobId: $jobId, taskId: $taskId, input: $input)
  }
`);

export const SKIP = graphql(`
  mutation Skip($jobId: ID!, $taskId: ID!, $reason: String) {
    skip(jobId: $jobId, taskId: $taskId, reason: $reason)
  }
`);

export const CANCEL_TASK = graphql(`
  mutation CancelTask($jobId: ID!, $taskId: ID!, $reason: String) {
    cancelTask(jobId: $jobId, taskId: $taskId, reason: $reason)
  }
`);

export const SIGNAL = graphql(`
  mutation Signal($jobId: ID!, $name: String!, $payload: JSON) {
    signal(jobId: $jobId, name: $name, payload: $payload)
  }
`);

export const COMPLETE_TASK = graphql(`
  mutation CompleteTask($jobId: ID!, $taskId: ID!, $output: JSON) {
    completeTask(jobId: $jobId, taskId: $taskId, output: $output)
  }
`);

export const FAIL_TASK = graphql(`
  mutation FailTask($jobId: ID!, $taskId: ID!, $message: String!) {
    failTask(jobId: $jobId, taskId: $taskId, message: $message)
  }
`);

export const SAME_NAME = graphql(`
  query JobsOfName($name: String!) {
    jobs(first: 20, filter: { name: $name }) {
      nodes {
        jobId
        state
        createdAt
      }
    }
  }
`);

export const WHY = graphql(`
  query Why($jobId: ID!, $taskId: ID!) {
    task(jobId: $jobId, taskId: $taskId) {
      why {
        code
        sentence
      }
    }
  }
`);
