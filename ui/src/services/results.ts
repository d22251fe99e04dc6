import { graphql, type ResultOf } from '../api/graphql';

export const SEARCH = graphql(`
  query Search($q: String!, $filter: ResultFilter, $first: Int!) {
    search(q: $q, filter: $filter, first: $first) {
      resultId
      jobId
      domain
      kind
      createdAt
      score
      ranks
      snippet
      document
    }
  }
`);

export type Hit = ResultOf<typeof SEARCH>['search'][number];

export const RESULTS = graphql(`
  query Results($filter: ResultFilter, $first: Int!, $after: String) {
    results(filter: $filter, first: $first, after: $after) {
      nodes {
        resultId
        jobId
        domain
        kind
        createdAt
        text
        document
      }
      pageInfo {
        hasNextPage
        endCursor
      }
    }
  }
`);
