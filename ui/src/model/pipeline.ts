/** What the pages make of a pipeline: columns of statuses, what each status means, how much gets done. */
import type { StatusCount } from './board';
import { command } from './commands';
import type { ItemGroup, PipelineSearch } from './search';

export const STUCK_SECONDS = 3600;

/** As much of a definition as is looked at here. */
export interface PipelineDocument {
  readonly course: readonly Entry[];
  readonly failed: string;
  readonly deadLetter: string;
  readonly moves?: readonly { readonly from: string; readonly to: string }[];
}

interface Step {
  readonly step: string;
  readonly statuses: readonly [string, string, string];
  readonly ends?: readonly string[];
}

interface Review {
  readonly review: string;
  readonly waiting: string;
  readonly reject: string;
  readonly taken?: string;
  readonly editing?: string;
  readonly again?: Readonly<Record<string, string>>;
}

type Entry = Partial<Step> &
  Partial<Review> & { readonly status?: string; readonly together?: readonly Step[] };

/** Which state of a task each status is like; that is its colour. What is only passed through is quiet. */
export function tones(pipeline: PipelineDocument): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  pipeline.course.forEach((entry, index) => {
    const last = index === pipeline.course.length - 1;
    for (const step of entry.together ?? (isStep(entry) ? [entry] : [])) {
      const [to, doing, done] = step.statuses;
      found.set(to, 'pending').set(doing, 'processing');
      found.set(done, last ? 'completed' : 'blocked');
      for (const end of step.ends ?? []) found.set(end, 'cancelled');
    }
    if (entry.status !== undefined) found.set(entry.status, last ? 'completed' : 'blocked');
    if (isReview(entry)) {
      for (const name of [entry.waiting, entry.taken, entry.editing]) {
        if (name !== undefined) found.set(name, 'waiting');
      }
      found.set(entry.reject, 'cancelled');
    }
  });
  found.set(pipeline.failed, 'failed').set(pipeline.deadLetter, 'failed');
  for (const { from, to } of pipeline.moves ?? []) {
    if (!found.has(to)) found.set(to, found.get(from) ?? 'blocked');
  }
  return found;
}

function isStep(entry: Entry): entry is Entry & Step {
  return entry.step !== undefined && entry.statuses !== undefined;
}

function isReview(entry: Entry): entry is Entry & Review {
  return entry.review !== undefined;
}

export interface Again {
  readonly decision: string;
  readonly at: string;
}

/** What a review may decide that begins an item again, and where: as in `re-enrich`. */
export function beginnings(pipeline: PipelineDocument): readonly Again[] {
  return pipeline.course.flatMap((entry) =>
    Object.entries(entry.again ?? {}).map(([decision, at]) => ({ decision, at })),
  );
}

/** The steps of a course, in order: those that can be run alone. */
export function stepsOf(pipeline: PipelineDocument): readonly string[] {
  return pipeline.course.flatMap((entry) =>
    (entry.together ?? (isStep(entry) ? [entry] : [])).map((step) => step.step),
  );
}

/** Where an item can begin: steps, reviews and statuses of the course, in order. */
export function placesOf(pipeline: PipelineDocument): readonly string[] {
  return pipeline.course.flatMap((entry) =>
    [entry.status, entry.review, ...(entry.together ?? [entry]).map((step) => step.step)].filter(
      (name) => name !== undefined,
    ),
  );
}

/** All that people may decide in the reviews of a pipeline. */
export function decisionsOf(pipeline: PipelineDocument): readonly string[] {
  const again = beginnings(pipeline).map((one) => one.decision);
  return pipeline.course.some(isReview) ? [...new Set(['approve', 'reject', ...again])] : [];
}

/** Those in which there are items. */
export function occupied(statuses: readonly StatusCount[]): readonly StatusCount[] {
  return statuses.filter((status) => status.items > 0);
}

export function doneInDay(hours: readonly { readonly items: number }[]): number {
  return hours.reduce((sum, hour) => sum + hour.items, 0);
}

export interface Filter {
  readonly status?: string;
  readonly stuck?: number;
  readonly retrying?: boolean;
  readonly held?: boolean;
}

const GROUPS: Record<ItemGroup, Filter> = {
  stuck: { stuck: STUCK_SECONDS },
  retrying: { retrying: true },
  held: { held: true },
};

export function itemFilter(search: PipelineSearch): Filter {
  if (search.status !== undefined) return { status: search.status };
  return search.show === undefined ? {} : GROUPS[search.show];
}

/** The same on the command line. */
export function itemCommand(pipeline: string, search: PipelineSearch): string {
  const words = Object.entries(itemFilter(search)).flatMap(([name, value]) =>
    value === true ? [`--${name}`] : [`--${name}`, String(value)],
  );
  return command('ostinato items ls', pipeline, ...words);
}

/** The same in the query of an address. */
export function itemQuery(search: PipelineSearch): string {
  const filter = new URLSearchParams(
    Object.entries(itemFilter(search)).map(([name, value]) => [name, String(value)]),
  ).toString();
  return filter && `?${filter}`;
}

export interface LegalMove {
  readonly fromCode: number;
  readonly fromStatus: string | null;
  readonly code: number;
  readonly status: string;
  readonly kind: string;
}

export interface Ways {
  readonly from: string;
  readonly code: number;
  /** Where it goes, by what for. */
  readonly to: readonly { readonly kind: string; readonly statuses: readonly string[] }[];
}

const KINDS = ['enter', 'course', 'end', 'review', 'named', 'retry', 'failure', 'again'];

/** The legal moves out of each status, in the order in which people think of them. */
export function ways(moves: readonly LegalMove[]): readonly Ways[] {
  const codes = [...new Set(moves.map((move) => move.fromCode))].toSorted((one, other) => one - other);
  return codes.map((code) => {
    const out = moves.filter((move) => move.fromCode === code);
    const to = KINDS.map((kind) => ({
      kind,
      statuses: out.filter((move) => move.kind === kind).map((move) => move.status),
    })).filter((way) => way.statuses.length > 0);
    return { code, from: out[0]?.fromStatus ?? 'entered', to };
  });
}

/** When an attempt comes, from a policy: `60 s, 2 min, 4 min`. */
export function delays(
  retry: { maxAttempts: number; baseDelay: number; multiplier: number; maxDelay: number },
  most = 4,
): readonly number[] {
  return Array.from({ length: Math.min(most, retry.maxAttempts - 1) }, (_, index) =>
    Math.min(retry.maxDelay, retry.baseDelay * retry.multiplier ** index),
  );
}

/** What a sentence such as `Retry scheduled for 2026-11-16T17:00:00.000Z: tag failed with Broken` says after the time. */
export function afterTime(sentence: string): string {
  return /^Retry scheduled for \S+Z(.*)$/.exec(sentence)?.[1] ?? sentence;
}

/** What something has cost, with as many decimals as say something. */
export function money(amount: number): string {
  if (amount === 0) return '0';
  return amount >= 0.01 ? amount.toFixed(2) : amount.toPrecision(2);
}
