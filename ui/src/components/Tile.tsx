import { Paper, Text } from '@mantine/core';
import type { ReactNode } from 'react';

/** A number that says at a glance whether one has to look. */
export function Tile({
  title,
  value,
  about,
  alarm,
}: {
  title: string;
  value: ReactNode;
  about?: ReactNode;
  alarm?: boolean;
}) {
  return (
    <Paper p="sm" className={`tile${alarm ? ' tile-alarm' : ''}`} h="100%">
      <Text fz="xs" c="dimmed" fw={600}>
        {title}
      </Text>
      <Text fz={26} fw={700} lh={1.2} style={alarm ? { color: 'var(--state-failed)' } : undefined}>
        {value}
      </Text>
      <Text fz="xs" c="dimmed" component="div" mih={18}>
        {about}
      </Text>
    </Paper>
  );
}
