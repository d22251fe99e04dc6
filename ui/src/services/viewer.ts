import { graphql, type ResultOf } from '../api/graphql';

export const VIEWER = graphql(`
  query Viewer {
    viewer {
      tenant
      keyId
      name
      scopes
    }
  }
`);

export type Viewer = ResultOf<typeof VIEWER>['viewer'];

/** Admin may do everything. */
export function may(viewer: Viewer, scope: string): boolean {
  return viewer.scopes.includes(scope) || viewer.scopes.includes('admin');
}
