/**
 * What the address says: filters live in the URL, so that a view can be sent to somebody else. What is read names all that a page
 * knows, undefined too: the router keeps what the address had for everything that is left out.
 */
import { isStatus, type Status } from './states';

export interface ExecutionSearch {
  agent?: string;
  status?: Status[];
  tag?: string;
  correlation?: string;
  from?: string;
  until?: string;
  order?: 'oldest';
  /** The engine's own jobs too: those of rules and gates. */
  engine?: true;
  after?: string;
}

export function readExecutionSearch(given: Record<string, unknown>): ExecutionSearch {
  const statuses = (Array.isArray(given.status) ? given.status : [given.status]).filter(isStatus);
  return {
    agent: text(given.agent),
    status: statuses.length ? statuses : undefined,
    tag: text(given.tag),
    correlation: text(given.correlation),
    from: moment(given.from),
    until: moment(given.until),
    order: given.order === 'oldest' ? 'oldest' : undefined,
    engine: given.engine === true || given.engine === 'true' ? true : undefined,
    after: text(given.after),
  };
}

export function executionFilter(search: ExecutionSearch) {
  return {
    agentName: search.agent,
    status: search.status,
    tag: search.tag,
    correlationId: search.correlation,
    startedFrom: search.from,
    startedUntil: search.until,
    includeEngine: search.engine,
  };
}

/** Other filters begin at the first page. */
export function refined(search: ExecutionSearch, change: Partial<ExecutionSearch>): ExecutionSearch {
  return pruned({ ...search, after: undefined, ...change });
}

export const JOB_TABS = ['graph', 'timeline', 'tasks', 'events', 'compare'] as const;
export type JobTab = (typeof JOB_TABS)[number];

export interface JobSearch {
  tab?: JobTab;
  task?: string;
  /** The job as it was after the event with this number. */
  at?: number;
  /** The job that it is compared with. */
  other?: string;
}

export function readJobSearch(given: Record<string, unknown>): JobSearch {
  const tab = JOB_TABS.find((name) => name === given.tab);
  const at = Number(given.at);
  return {
    tab: tab === 'graph' ? undefined : tab,
    task: text(given.task),
    at: given.at !== undefined && Number.isInteger(at) && at > 0 ? at : undefined,
    other: text(given.other),
  };
}

export interface LetterSearch {
  name?: string;
  job?: string;
  error?: string;
  after?: string;
}

export function readLetterSearch(given: Record<string, unknown>): LetterSearch {
  return {
    name: text(given.name),
    job: text(given.job),
    error: text(given.error),
    after: text(given.after),
  };
}

export interface KeySearch {
  key?: string;
  after?: string;
}

export function readKeySearch(given: Record<string, unknown>): KeySearch {
  return { key: text(given.key), after: text(given.after) };
}

export interface NameSearch {
  name?: string;
}

export function readNameSearch(given: Record<string, unknown>): NameSearch {
  return { name: text(given.name) };
}

export interface ApprovalSearch {
  state?: string;
  mine?: boolean;
  job?: string;
  task?: string;
  key?: string;
  after?: string;
}

export function readApprovalSearch(given: Record<string, unknown>): ApprovalSearch {
  return {
    state: text(given.state),
    mine: given.mine === true || undefined,
    job: text(given.job),
    task: text(given.task),
    key: text(given.key),
    after: text(given.after),
  };
}

export const PIPELINE_TABS = ['board', 'health', 'moves', 'definition'] as const;
export type PipelineTab = (typeof PIPELINE_TABS)[number];
export const ITEM_GROUPS = ['stuck', 'retrying', 'held'] as const;
export type ItemGroup = (typeof ITEM_GROUPS)[number];

export interface PipelineSearch {
  tab?: PipelineTab;
  /** The name of a status; or else those that are stuck, tried again or held back. */
  status?: string;
  show?: ItemGroup;
  after?: string;
}

export function readPipelineSearch(given: Record<string, unknown>): PipelineSearch {
  const tab = PIPELINE_TABS.find((name) => name === given.tab);
  const status = text(given.status);
  return {
    tab: tab === 'board' ? undefined : tab,
    status,
    show: status === undefined ? ITEM_GROUPS.find((name) => name === given.show) : undefined,
    after: text(given.after),
  };
}

export const SHELVES = ['playbooks', 'agents', 'graphs'] as const;
export type Shelf = (typeof SHELVES)[number];

export interface ShelfSearch {
  tab?: Shelf;
}

export function readShelfSearch(given: Record<string, unknown>): ShelfSearch {
  return { tab: SHELVES.find((name) => name === given.tab && name !== 'playbooks') };
}

export interface ResultSearch {
  q?: string;
  domain?: string;
  after?: string;
}

export function readResultSearch(given: Record<string, unknown>): ResultSearch {
  return { q: text(given.q), domain: text(given.domain), after: text(given.after) };
}

/** Numbers and truths in an address were text to whoever wrote it. */
export function text(given: unknown): string | undefined {
  if (typeof given === 'number' || typeof given === 'boolean') return String(given);
  return typeof given === 'string' && given !== '' ? given : undefined;
}

function moment(given: unknown): string | undefined {
  const said = text(given);
  return said !== undefined && !Number.isNaN(Date.parse(said)) ? said : undefined;
}

export function pruned<T extends object>(given: T): T {
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)) as T;
}
