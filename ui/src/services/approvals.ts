import { graphql, type ResultOf } from '../api/graphql';

export const APPROVALS = graphql(`
  query Approvals($filter: ApprovalFilter, $first: Int!, $after: String) {
    approvals(filter: $filter, first: $first, after: $after) {
      nodes {
        jobId
        taskId
        key
        state
        title
        quorum
        approvals
        submittedBy
        requestedAt
        dueAt
        escalatedAt
        decidedAt
      }
      pageInfo {
        hasNextPage
        endCursor
      }
    }
  }
`);

export type ApprovalLine = ResultOf<typeof APPROVALS>['approvals']['nodes'][number];

export const APPROVAL = graphql(`
  query Approval($jobId: ID!, $taskId: ID!, $key: String) {
    approval(jobId: $jobId, taskId: $taskId, key: $key) {
      outputs
      approval {
        jobId
        taskId
        key
        version
        state
        title
        payload
        decisions
        quorum
        approvals
        asked
        notSubmitter
        allowEdit
        submittedBy
        requestedAt
        dueAt
        onDeadline
        escalatedAt
        decidedAt
        made {
          by
          at
          decision
          notes
          edited
        }
      }
    }
  }
`);

export type Approval = NonNullable<ResultOf<typeof APPROVAL>['approval']>['approval'];

export const DECIDE = graphql(`
  mutation Decide(
    $jobId: ID!
    $taskId: ID!
    $key: String
    $decision: String!
    $notes: String
    $payload: JSON
    $version: Int
  ) {
    decide(
      jobId: $jobId
      taskId: $taskId
      key: $key
      decision: $decision
      notes: $notes
      payload: $payload
      version: $version
    ) {
      state
      again
      approvals
      quorum
    }
  }
`);

export const APPROVAL_EVENTS = {
  types: [
    'Approval Requested',
    'Approval Decided',
    'Approval Escalated',
    'Approval Expired',
    'Job Cancelled',
  ],
};
