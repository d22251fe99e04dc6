import { Button, Group, Text } from '@mantine/core';
import { useMemo, useState } from 'react';
import { show, size } from '../model/payload';
import { Copy } from './bits';

/** A value as text. Long ones are folded: a megabyte of JSON is only laid out when somebody asks for it. */
export function Payload({ value, label }: { value: unknown; label: string }) {
  const [whole, setWhole] = useState(false);
  const shown = useMemo(() => show(value), [value]);
  const folded = shown.head !== null && !whole;
  return (
    <div>
      <Group gap="xs" mb={4} justify="space-between">
        <Text fz="xs" fw={600} c="dimmed">
          {label} {shown.head !== null && `· ${shown.lines.toLocaleString()} lines, ${size(shown.bytes)}`}
        </Text>
        <Group gap={4}>
          {shown.head !== null && (
            <Button variant="subtle" size="compact-xs" onClick={() => setWhole(!whole)}>
              {folded ? 'Show all' : 'Fold'}
            </Button>
          )}
          <Copy text={shown.text} label={`Copy the ${label.toLowerCase()}`} />
        </Group>
      </Group>
      {/* oxlint-disable-next-line no-noninteractive-tabindex -- it scrolls, and must do so by keyboard, too */}
      <pre className="payload" tabIndex={0} style={{ maxHeight: whole ? '70vh' : 320 }}>
        {folded ? `${shown.head}\n…` : shown.text}
      </pre>
    </div>
  );
}
