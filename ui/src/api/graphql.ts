import { initGraphQLTada } from 'gql.tada';
import type { introspection } from '../graphql-env.d.ts';

/** Documents are typed by the schema of the server: one that does not fit it does not compile. */
export const graphql = initGraphQLTada<{
  introspection: introspection;
  scalars: { JSON: unknown; DateTime: string; ID: string };
}>();

export type { FragmentOf, ResultOf, VariablesOf } from 'gql.tada';
export { readFragment } from 'gql.tada';
