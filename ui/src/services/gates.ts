import { graphql, type ResultOf } from '../api/graphql';

export const GATES = graphql(`
  query Gates {
    gates {
      name
      version
      description
      createdAt
      createdBy
    }
  }
`);

export const GATE_KEYS = graphql(`
  query GateKeys($gate: String!, $first: Int!, $after: String) {
    gateKeys(gate: $gate, first: $first, after: $after) {
      nodes {
        key
        jobId
        status
        completedCount
        expectedCount
        since
        endedAt
      }
      pageInfo {
        hasNextPage
        endCursor
      }
    }
  }
`);

export type GateKey = ResultOf<typeof GATE_KEYS>['gateKeys']['nodes'][number];

export const GATE_STATUS = graphql(`
  query GateStatus($gate: String!, $key: String!) {
    gateStatus(gate: $gate, key: $key) {
      status
      completedCount
      expectedCount
      missing
      since
      openedAt
      openedBy
      reason
      endedAt
      error
      triggered
      sentence
      correlationIds
      arrived {
        member
        status
        success
        arrivedAt
        correlationId
        recordCount
      }
      failed {
        member
        status
        success
        arrivedAt
        correlationId
        recordCount
      }
      late {
        member
        status
        success
        arrivedAt
        correlationId
        recordCount
      }
    }
  }
`);

export type GateStatus = NonNullable<ResultOf<typeof GATE_STATUS>['gateStatus']>;
export type Arrival = GateStatus['arrived'][number];

export const ARRIVE = graphql(`
  mutation Arrive($gate: String!, $key: String!, $member: ID!, $data: JSON) {
    arrive(gate: $gate, key: $key, member: $member, data: $data) {
      outcome
      opened
    }
  }
`);

export const OPEN_GATE = graphql(`
  mutation OpenGate($gate: String!, $key: String!, $reason: String!) {
    openGate(gate: $gate, key: $key, reason: $reason)
  }
`);

export const RESET_GATE = graphql(`
  mutation ResetGate($gate: String!, $key: String!, $reason: String) {
    resetGate(gate: $gate, key: $key, reason: $reason)
  }
`);

/** The name of the jobs in which the members of a gate report. */
export const GATE_PREFIX = 'gate:';

export function gateEvents(gate: string) {
  return { jobName: `${GATE_PREFIX}${gate}` };
}
