import { graphql } from '../api/graphql';

export const RULES = graphql(`
  query Rules {
    rules {
      name
      version
      description
      enabled
      createdAt
      createdBy
    }
  }
`);
