/** The statuses of a pipeline as a board: a column for each phase, in the order of their codes. */

export interface StatusCount {
  readonly code: number;
  readonly name: string;
  readonly phase: string | null;
  readonly items: number;
}

export interface Column {
  readonly phase: string;
  readonly statuses: readonly StatusCount[];
  readonly items: number;
}

export function columns(statuses: readonly StatusCount[]): Column[] {
  const phases = new Map<string, StatusCount[]>();
  for (const status of statuses.toSorted((one, other) => one.code - other.code)) {
    const phase = status.phase ?? 'other';
    phases.set(phase, [...(phases.get(phase) ?? []), status]);
  }
  return [...phases].map(([phase, found]) => ({
    phase,
    statuses: found,
    items: found.reduce((sum, status) => sum + status.items, 0),
  }));
}
