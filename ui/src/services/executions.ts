import { graphql, type ResultOf, type VariablesOf } from '../api/graphql';

export const EXECUTIONS = graphql(`
  query Executions($filter: ExecutionFilter, $order: String!, $first: Int!, $after: String) {
    executions(filter: $filter, order: $order, first: $first, after: $after) {
      nodes {
        executionArn
        jobId
        agentName
        executionName
        status
        startDate
        stopDate
        correlationId
        tags
      }
      pageInfo {
        hasNextPage
        endCursor
      }
    }
  }
`);

export type Execution = ResultOf<typeof EXECUTIONS>['executions']['nodes'][number];
export type ExecutionFilter = NonNullable<VariablesOf<typeof EXECUTIONS>['filter']>;
