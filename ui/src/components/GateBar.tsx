import { Group, Text } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import type { GateKey } from '../services/gates';
import { Moment, State } from './bits';

/** A key of a gate: how many of its members have come, and since when it waits. */
export function GateBar({ gate, one, chosen }: { gate: string; one: GateKey; chosen?: boolean }) {
  return (
    <Group
      gap="sm"
      wrap="nowrap"
      py={3}
      px={6}
      className={chosen ? 'row chosen' : undefined}
      style={{ position: 'static' }}
    >
      <span style={{ width: 76, flex: 'none' }}>
        <State state={one.status} />
      </span>
      <Text span fz="sm" fw={600} w={40} flex="none" ta="right">
        {one.completedCount}/{one.expectedCount}
      </Text>
      <Link
        className="link clip"
        to="/gates/$name"
        params={{ name: gate }}
        search={{ key: one.key }}
        style={{ flex: 1, fontSize: 13 }}
      >
        {one.key}
      </Link>
      <Text span fz="xs" c="dimmed" flex="none">
        <Moment at={one.since} />
      </Text>
    </Group>
  );
}
