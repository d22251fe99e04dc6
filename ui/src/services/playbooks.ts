import { graphql, type ResultOf } from '../api/graphql';

export const PLAYBOOKS = graphql(`
  query Playbooks {
    playbooks {
      name
      version
      description
      domain
      type
      agents
      createdAt
    }
    agents {
      name
      version
      description
      kind
      createdAt
    }
    graphs {
      name
      version
      description
      createdAt
    }
  }
`);

export type Shelf = ResultOf<typeof PLAYBOOKS>;
export type Playbook = Shelf['playbooks'][number];

export const PLAN = graphql(`
  query PlaybookPlan($name: String!) {
    playbookPlan(name: $name) {
      levels
      criticalPath
      warnings
    }
  }
`);

export type Plan = NonNullable<ResultOf<typeof PLAN>['playbookPlan']>;

export const INGEST = graphql(`
  mutation Ingest($domainId: String!, $data: JSON, $playbook: String) {
    accepted: ingest(domainId: $domainId, data: $data, playbook: $playbook) {
      jobId
    }
  }
`);

export const QUERY = graphql(`
  mutation Query($domainId: String!, $data: JSON, $playbook: String) {
    accepted: query(domainId: $domainId, data: $data, playbook: $playbook) {
      jobId
    }
  }
`);

export const STATUSES = graphql(`
  subscription JobStatus($jobId: ID!) {
    jobStatus(jobId: $jobId, cursor: "0.0.0") {
      status
      message
      timestamp
      taskId
      cursor
    }
  }
`);

export type JobStatus = ResultOf<typeof STATUSES>['jobStatus'];

export const OUTPUT = graphql(`
  query Output($jobId: ID!, $taskId: ID!) {
    task(jobId: $jobId, taskId: $taskId) {
      detail {
        output
      }
    }
  }
`);

export const RUNS = graphql(`
  query Runs($tag: String!) {
    executions(first: 8, filter: { tag: $tag }) {
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
    }
  }
`);
