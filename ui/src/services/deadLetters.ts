import { graphql, type ResultOf } from '../api/graphql';

export const DEPTH = graphql(`
  query DeadLetterDepth {
    deadLetterDepth {
      depth
      threshold
      alarm
    }
  }
`);

export const DEAD_LETTERS = graphql(`
  query DeadLetters($filter: DeadLetterFilter, $first: Int!, $after: String) {
    deadLetters(filter: $filter, first: $first, after: $after) {
      nodes {
        jobId
        taskId
        name
        failedAt
        attempts
        error
      }
      pageInfo {
        hasNextPage
        endCursor
      }
    }
  }
`);

export type DeadLetter = ResultOf<typeof DEAD_LETTERS>['deadLetters']['nodes'][number];

export const REDRIVE = graphql(`
  mutation Redrive($input: RedriveInput!) {
    redrive(input: $input) {
      dryRun
      count
      letters {
        jobId
        taskId
      }
    }
  }
`);
