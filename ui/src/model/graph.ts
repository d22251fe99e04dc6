/** The graph of a job: what is drawn where, and what it all waited for. */
import type { TaskRow } from './run';

export interface Size {
  readonly width: number;
  readonly height: number;
}

export const NODE: Size = { width: 176, height: 46 };

export interface Edge {
  readonly from: string;
  readonly to: string;
}

export interface Layout {
  readonly places: Readonly<Record<string, { x: number; y: number }>>;
}

export interface LayoutRequest {
  readonly ids: readonly string[];
  readonly edges: readonly Edge[];
}

export interface Point {
  readonly x: number;
  readonly y: number;
}

export interface Viewport extends Point {
  readonly zoom: number;
}

/** From how near words are read with ease. */
const LEGIBLE = 0.8;
/** What lies on the graph, above and at the left, covers this much of it. */
const EDGE = { x: 24, y: 52 };

/**
 * Where to begin in a graph of which all cannot be seen at a zoom of `least`: at `focus`, near enough to read, and with no more
 * empty space than need be. Null if it can.
 */
export function opening(bounds: Point & Size, pane: Size, focus: Point, least: number): Viewport | null {
  const fits = Math.min((pane.width - 2 * EDGE.x) / bounds.width, (pane.height - 2 * EDGE.y) / bounds.height);
  if (fits >= least) return null;
  return {
    x: along(bounds.x, bounds.width, pane.width, focus.x, EDGE.x),
    y: along(bounds.y, bounds.height, pane.height, focus.y, EDGE.y),
    zoom: LEGIBLE,
  };
}

function along(start: number, length: number, room: number, at: number, edge: number): number {
  const [first, last] = [edge - start * LEGIBLE, room - edge - (start + length) * LEGIBLE];
  if (last >= first) return (first + last) / 2;
  return Math.min(first, Math.max(last, room / 2 - at * LEGIBLE));
}

export function edgesOf(tasks: readonly Pick<TaskRow, 'taskId' | 'dependsOn'>[]): Edge[] {
  const known = new Set(tasks.map((task) => task.taskId));
  return tasks.flatMap((task) =>
    task.dependsOn.filter((from) => known.has(from)).map((from) => ({ from, to: task.taskId })),
  );
}

/** The shape of a graph: it is laid out anew when this changes, and not when a task moves on. */
export function shapeOf(tasks: readonly Pick<TaskRow, 'taskId' | 'dependsOn'>[]): string {
  return tasks.map((task) => `${task.taskId}<${task.dependsOn.join(',')}`).join(';');
}

/**
 * The chain of tasks that decided when the job could end: from the last one that ended back along the dependency that ended
 * last. Without times (nothing has run) it is the longest chain.
 */
export function criticalPath(tasks: readonly TaskRow[]): string[] {
  const rows = new Map(tasks.map((task) => [task.taskId, task]));
  const end = (task: TaskRow) =>
    task.finishedAt ? Date.parse(task.finishedAt) : task.startedAt ? Infinity : -Infinity;
  const depth = depths(tasks);
  const later = (one: TaskRow, other: TaskRow) =>
    end(one) === end(other)
      ? depth.get(one.taskId)! >= depth.get(other.taskId)!
        ? one
        : other
      : end(one) > end(other)
        ? one
        : other;
  let task = tasks.length ? tasks.reduce(later) : undefined;
  const path: string[] = [];
  while (task && path.length <= tasks.length) {
    path.push(task.taskId);
    const before = task.dependsOn.map((taskId) => rows.get(taskId)).filter((row) => row !== undefined);
    task = before.length ? before.reduce(later) : undefined;
  }
  return path.toReversed();
}

/** How many tasks are in the longest chain that ends in each. The graph has no cycle: the server refuses those. */
export function depths(tasks: readonly Pick<TaskRow, 'taskId' | 'dependsOn'>[]): Map<string, number> {
  const found = new Map<string, number>();
  const dependants = new Map<string, string[]>();
  const open = new Map<string, number>();
  const known = new Set(tasks.map((task) => task.taskId));
  for (const task of tasks) {
    const before = task.dependsOn.filter((taskId) => known.has(taskId));
    open.set(task.taskId, before.length);
    for (const up of before) dependants.set(up, [...(dependants.get(up) ?? []), task.taskId]);
  }
  const ready = tasks.filter((task) => open.get(task.taskId) === 0).map((task) => task.taskId);
  for (const taskId of ready) found.set(taskId, 1);
  for (let index = 0; index < ready.length; index += 1) {
    const taskId = ready[index]!;
    for (const down of dependants.get(taskId) ?? []) {
      found.set(down, Math.max(found.get(down) ?? 1, found.get(taskId)! + 1));
      open.set(down, open.get(down)! - 1);
      if (open.get(down) === 0) ready.push(down);
    }
  }
  for (const task of tasks) if (!found.has(task.taskId)) found.set(task.taskId, 1);
  return found;
}
