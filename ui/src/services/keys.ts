import { graphql, type ResultOf } from '../api/graphql';

export const KEYS = graphql(`
  query Keys {
    keys {
      keyId
      name
      scopes
      state
      createdAt
      expiresAt
      lastUsedAt
    }
  }
`);

export type Key = ResultOf<typeof KEYS>['keys'][number];

export const CREATE_KEY = graphql(`
  mutation CreateKey($name: String!, $scopes: [String!]!, $expiresIn: Float) {
    createKey(name: $name, scopes: $scopes, expiresIn: $expiresIn) {
      text
    }
  }
`);

export const REVOKE_KEY = graphql(`
  mutation RevokeKey($keyId: ID!) {
    revokeKey(keyId: $keyId)
  }
`);

export const SCOPES = [
  { value: 'jobs:read', label: 'jobs:read – look at everything that runs' },
  { value: 'jobs:write', label: 'jobs:write – submit, resume, cancel' },
  { value: 'tasks:work', label: 'tasks:work – be a worker' },
  { value: 'approvals:decide', label: 'approvals:decide – approve and reject' },
  { value: 'config:write', label: 'config:write – define gates, rules and playbooks' },
  { value: 'admin', label: 'admin – everything, keys included' },
];
