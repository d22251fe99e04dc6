/** Statuses with how many items are in each, in a column for each phase. */
import { Text, VisuallyHidden } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import type { CSSProperties } from 'react';
import { columns, type StatusCount } from '../model/board';

export function Board({
  pipeline,
  statuses,
  tones,
  chosen,
}: {
  pipeline: string;
  statuses: readonly StatusCount[];
  tones: ReadonlyMap<string, string>;
  chosen: string | undefined;
}) {
  const most = Math.max(1, ...statuses.map((status) => status.items));
  return (
    // oxlint-disable-next-line no-noninteractive-tabindex -- it scrolls, and must do so by keyboard, too
    <div className="board" role="group" aria-label="Board" tabIndex={0}>
      {columns(statuses).map((column) => (
        <section key={column.phase} className="board-phase" aria-label={column.phase}>
          <Text fz="xs" fw={600} c="dimmed" className="board-title">
            <span>{column.phase}</span>
            <span>{column.items.toLocaleString()}</span>
          </Text>
          {column.statuses.map((status) => (
            <Link
              key={status.code}
              to="/pipelines/$name"
              params={{ name: pipeline }}
              search={status.name === chosen ? {} : { status: status.name }}
              className={`board-status${status.name === chosen ? ' chosen' : ''}${status.items ? '' : ' empty'}`}
              style={
                {
                  '--state': `var(--state-${tones.get(status.name) ?? 'blocked'})`,
                  '--share': `${(100 * status.items) / most}%`,
                } as CSSProperties
              }
              title={`${status.code} ${status.name}`}
              aria-current={status.name === chosen ? 'true' : undefined}
            >
              <span className="state-dot" aria-hidden="true" />
              <span className="clip" style={{ flex: 1 }}>
                {status.name}
              </span>{' '}
              <b>{status.items.toLocaleString()}</b>
              <VisuallyHidden> items</VisuallyHidden>
            </Link>
          ))}
        </section>
      ))}
    </div>
  );
}
