import { graphql, type ResultOf, type VariablesOf } from '../api/graphql';

export const PIPELINES = graphql(`
  query Pipelines {
    pipelines {
      name
      version
      description
      steps
      reviews
      createdAt
    }
  }
`);

export type PipelineLine = ResultOf<typeof PIPELINES>['pipelines'][number];

export const HEALTH = graphql(`
  query PipelineHealth($name: String!) {
    pipelineHealth(name: $name) {
      items
      statuses {
        code
        name
        phase
        items
      }
      steps {
        step
        completed
        failed
        failureRate
        averageSeconds
        p95Seconds
      }
      stuck {
        itemId
        status
        since
        why
      }
      stuckCount
      retrying
      nextRetryAt
      throughput {
        beginsAt
        items
      }
      reviewsWaiting
      oldestReviewAt
    }
  }
`);

export type Health = NonNullable<ResultOf<typeof HEALTH>['pipelineHealth']>;

export const ITEMS = graphql(`
  query Items($pipeline: String!, $filter: ItemFilter, $first: Int!, $after: String) {
    items(pipeline: $pipeline, filter: $filter, first: $first, after: $after) {
      nodes {
        itemId
        version
        status
        code
        sentence
        retryAt
        failures
        run
        enteredAt
        statusAt
      }
      pageInfo {
        hasNextPage
        endCursor
      }
    }
  }
`);

export type ItemLine = NonNullable<ResultOf<typeof ITEMS>['items']>['nodes'][number];

export const LEGAL_MOVES = graphql(`
  query LegalMoves($name: String!) {
    pipelineMoves(name: $name) {
      statuses {
        code
        name
        phase
      }
      moves {
        fromCode
        fromStatus
        code
        status
        kind
      }
      mermaid
    }
  }
`);

export const POLICIES = graphql(`
  query RetryPolicies($pipeline: String!) {
    retryPolicies(pipeline: $pipeline) {
      step
      changed
      retry {
        maxAttempts
        baseDelay
        multiplier
        maxDelay
        jitter
      }
    }
  }
`);

export type Policy = NonNullable<ResultOf<typeof POLICIES>['retryPolicies']>[number];

export const SET_POLICY = graphql(`
  mutation SetRetryPolicy($pipeline: String!, $step: String!, $retry: RetryInput!) {
    setRetryPolicy(pipeline: $pipeline, step: $step, retry: $retry) {
      step
    }
  }
`);

export const RESET_POLICY = graphql(`
  mutation ResetRetryPolicy($pipeline: String!, $step: String!) {
    resetRetryPolicy(pipeline: $pipeline, step: $step) {
      step
    }
  }
`);

export const ENTER = graphql(`
  mutation EnterItems($pipeline: String!, $items: [ItemInput!]!) {
    enterItems(pipeline: $pipeline, items: $items) {
      itemId
      created
    }
  }
`);

export const PROCESS = graphql(`
  mutation ProcessItems($pipeline: String!, $most: Int!) {
    processItems(pipeline: $pipeline, most: $most) {
      itemId
    }
  }
`);

export const BULK = graphql(`
  mutation BulkItems($pipeline: String!, $input: BulkInput!) {
    bulkItems(pipeline: $pipeline, input: $input) {
      dryRun
      matched
      possible
      more
      items {
        itemId
        status
        outcome
        detail
      }
    }
  }
`);

export type BulkDone = ResultOf<typeof BULK>['bulkItems'];
export type BulkInput = VariablesOf<typeof BULK>['input'];

/** The name of the jobs in which the items of a pipeline run. */
export const JOB_PREFIX = 'pipeline:';

export function pipelineEvents(pipeline: string) {
  return { jobName: `${JOB_PREFIX}${pipeline}`, types: ['Item Moved'] };
}

export const ALL_ITEM_EVENTS = { types: ['Item Moved'] };
