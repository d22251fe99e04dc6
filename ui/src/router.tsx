/** Which address shows which page. Pages are loaded when they are first wanted. */
import { createRootRoute, createRoute, createRouter, lazyRouteComponent, Link } from '@tanstack/react-router';
import { Nothing } from './components/Answer';
import { Shell } from './components/Shell';
import {
  readApprovalSearch,
  readExecutionSearch,
  readJobSearch,
  readKeySearch,
  readLetterSearch,
  readNameSearch,
  readPipelineSearch,
  readResultSearch,
  readShelfSearch,
} from './model/search';

const root = createRootRoute({
  component: Shell,
  notFoundComponent: () => (
    <Nothing title="There is no such page">
      <Link to="/" className="link">
        Go to the dashboard
      </Link>
    </Nothing>
  ),
});

const routes = [
  createRoute({
    getParentRoute: () => root,
    path: '/',
    component: lazyRouteComponent(() => import('./routes/dashboard'), 'Dashboard'),
  }),
  createRoute({
    getParentRoute: () => root,
    path: '/executions',
    validateSearch: readExecutionSearch,
    component: lazyRouteComponent(() => import('./routes/executions'), 'Executions'),
  }),
  createRoute({
    getParentRoute: () => root,
    path: '/jobs/$jobId',
    validateSearch: readJobSearch,
    component: lazyRouteComponent(() => import('./routes/job'), 'JobPage'),
  }),
  createRoute({
    getParentRoute: () => root,
    path: '/dead-letters',
    validateSearch: readLetterSearch,
    component: lazyRouteComponent(() => import('./routes/deadLetters'), 'DeadLetters'),
  }),
  createRoute({
    getParentRoute: () => root,
    path: '/workers',
    component: lazyRouteComponent(() => import('./routes/workers'), 'Workers'),
  }),
  createRoute({
    getParentRoute: () => root,
    path: '/gates',
    component: lazyRouteComponent(() => import('./routes/gates'), 'Gates'),
  }),
  createRoute({
    getParentRoute: () => root,
    path: '/gates/$name',
    validateSearch: readKeySearch,
    component: lazyRouteComponent(() => import('./routes/gate'), 'GatePage'),
  }),
  createRoute({
    getParentRoute: () => root,
    path: '/rules',
    validateSearch: readNameSearch,
    component: lazyRouteComponent(() => import('./routes/rules'), 'Rules'),
  }),
  createRoute({
    getParentRoute: () => root,
    path: '/pipelines',
    component: lazyRouteComponent(() => import('./routes/pipelines'), 'Pipelines'),
  }),
  createRoute({
    getParentRoute: () => root,
    path: '/pipelines/$name',
    validateSearch: readPipelineSearch,
    component: lazyRouteComponent(() => import('./routes/pipeline'), 'PipelinePage'),
  }),
  createRoute({
    getParentRoute: () => root,
    path: '/items/$itemId',
    component: lazyRouteComponent(() => import('./routes/item'), 'ItemPage'),
  }),
  createRoute({
    getParentRoute: () => root,
    path: '/approvals',
    validateSearch: readApprovalSearch,
    component: lazyRouteComponent(() => import('./routes/approvals'), 'Approvals'),
  }),
  createRoute({
    getParentRoute: () => root,
    path: '/playbooks',
    validateSearch: readShelfSearch,
    component: lazyRouteComponent(() => import('./routes/playbooks'), 'Playbooks'),
  }),
  createRoute({
    getParentRoute: () => root,
    path: '/playbooks/$name',
    component: lazyRouteComponent(() => import('./routes/playbook'), 'PlaybookPage'),
  }),
  createRoute({
    getParentRoute: () => root,
    path: '/definitions/$kind/$name',
    component: lazyRouteComponent(() => import('./routes/definition'), 'DefinitionPage'),
  }),
  createRoute({
    getParentRoute: () => root,
    path: '/results',
    validateSearch: readResultSearch,
    component: lazyRouteComponent(() => import('./routes/results'), 'Results'),
  }),
  createRoute({
    getParentRoute: () => root,
    path: '/keys',
    component: lazyRouteComponent(() => import('./routes/keys'), 'Keys'),
  }),
] as const;

export const router = createRouter({
  routeTree: root.addChildren(routes),
  basepath: '/ui',
  defaultPreload: 'intent',
  defaultErrorComponent: ({ error, reset }) => (
    <Nothing title="This page broke">
      {error instanceof Error ? error.message : String(error)}{' '}
      <button type="button" className="link-button" onClick={reset}>
        Try again
      </button>
    </Nothing>
  ),
});

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router;
  }
}
