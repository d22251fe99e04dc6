import { Anchor, Box, Checkbox, Group, Table, Text } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import { stateOf } from '../model/states';
import type { Execution } from '../services/executions';
import { Elapsed, Moment, State } from './bits';

export interface Selection {
  readonly chosen: ReadonlySet<string>;
  readonly choose: (jobIds: readonly string[], on: boolean) => void;
}

export function ExecutionTable({
  executions,
  selection,
  onTag,
  compact = false,
}: {
  executions: readonly Execution[];
  /** Without the names and tags, where all have the same. */
  compact?: boolean;
  selection?: Selection;
  onTag?: (tag: string) => void;
}) {
  const ids = executions.map((one) => one.jobId).filter((jobId) => jobId !== null);
  const all = ids.length > 0 && ids.every((jobId) => selection?.chosen.has(jobId));
  return (
    <Table.ScrollContainer minWidth={compact ? 400 : 700}>
      <Table highlightOnHover>
        <Table.Thead>
          <Table.Tr>
            {selection && (
              <Table.Th w={34}>
                <Checkbox
                  size="xs"
                  aria-label="All on this page"
                  checked={all}
                  indeterminate={!all && ids.some((jobId) => selection.chosen.has(jobId))}
                  onChange={() => selection.choose(ids, !all)}
                />
              </Table.Th>
            )}
            <Table.Th w={120}>Status</Table.Th>
            {!compact && <Table.Th>Agent</Table.Th>}
            <Table.Th>Execution</Table.Th>
            <Table.Th w={110}>Started</Table.Th>
            <Table.Th w={110}>Took</Table.Th>
            {!compact && <Table.Th>Tags</Table.Th>}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {executions.map((one) => (
            <Table.Tr key={one.executionArn}>
              {selection && (
                <Table.Td>
                  {one.jobId !== null && (
                    <Checkbox
                      size="xs"
                      aria-label={`Choose ${one.jobId}`}
                      checked={selection.chosen.has(one.jobId)}
                      onChange={(event) => selection.choose([one.jobId!], event.currentTarget.checked)}
                    />
                  )}
                </Table.Td>
              )}
              <Table.Td>
                <State state={stateOf(one.status)} />
              </Table.Td>
              {!compact && (
                <Table.Td className="clip" maw={220}>
                  {one.agentName}
                </Table.Td>
              )}
              <Table.Td className="mono clip" maw={ID_WIDTH} title={one.executionArn}>
                {one.jobId === null ? (
                  <span>{one.executionName}</span>
                ) : (
                  <Link className="link" to="/jobs/$jobId" params={{ jobId: one.jobId }}>
                    {one.jobId}
                  </Link>
                )}
              </Table.Td>
              <Table.Td>
                <Moment at={one.startDate} />
              </Table.Td>
              <Table.Td>
                <Elapsed from={one.startDate} to={one.stopDate} />
              </Table.Td>
              {!compact && (
                <Table.Td>
                  <Box miw={{ base: 280, sm: 170 }}>
                    <Tags tags={one.tags as Record<string, string>} onTag={onTag} few />
                  </Box>
                </Table.Td>
              )}
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Table.ScrollContainer>
  );
}

/** All of an id where there is room, and else enough of it to leave some for the tags. */
const ID_WIDTH = { base: 190, lg: 240, xl: 330 };

/** More than so many would make a row of a list too high. */
const FEW = 2;

export function Tags({
  tags,
  onTag,
  few = false,
}: {
  tags: Record<string, string>;
  onTag?: (tag: string) => void;
  /** Only the first one, if there are many, until the others are asked for. */
  few?: boolean;
}) {
  const [whole, setWhole] = useState(!few);
  const all = Object.entries(tags);
  const shown = whole || all.length <= FEW ? all : all.slice(0, 1);
  return (
    <Group gap={8}>
      {shown.map(([key, value]) => {
        const tag = `${key}=${value}`;
        return onTag ? (
          <Anchor
            key={key}
            component="button"
            type="button"
            fz="xs"
            ta="left"
            className="unbroken"
            onClick={() => onTag(tag)}
          >
            {tag}
          </Anchor>
        ) : (
          <Text key={key} fz="xs" c="dimmed" className="unbroken">
            {tag}
          </Text>
        );
      })}
      {shown.length < all.length && (
        <Anchor
          component="button"
          type="button"
          fz="xs"
          c="dimmed"
          title={all
            .slice(1)
            .map(([key, value]) => `${key}=${value}`)
            .join(', ')}
          onClick={() => setWhole(true)}
        >
          {all.length - shown.length} more
        </Anchor>
      )}
    </Group>
  );
}
