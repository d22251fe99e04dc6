import '@mantine/charts/styles.css';
import { BarChart } from '@mantine/charts';
import { Text } from '@mantine/core';
import { clockTime } from '../model/dashboard';
import type { StatusCount } from '../model/board';
import type { Health } from '../services/pipelines';

const ROW = 26;
const PLAIN = { isAnimationActive: false };

export function Statuses({
  statuses,
  tones,
}: {
  statuses: readonly StatusCount[];
  tones: ReadonlyMap<string, string>;
}) {
  if (statuses.length === 0) {
    return (
      <Text fz="sm" c="dimmed">
        No items yet.
      </Text>
    );
  }
  const said = statuses.map((status) => `${status.items} ${status.name}`).join(', ');
  return (
    <div role="img" aria-label={`Items by status: ${said}`}>
      <BarChart
        h={statuses.length * ROW + 40}
        data={statuses.map((status) => ({
          status: status.name,
          items: status.items,
          color: `var(--state-${tones.get(status.name) ?? 'blocked'})`,
        }))}
        dataKey="status"
        orientation="vertical"
        series={[{ name: 'items', color: 'var(--state-blocked)' }]}
        tickLine="none"
        gridAxis="y"
        barProps={PLAIN}
        xAxisProps={{ allowDecimals: false }}
        yAxisProps={{ width: 130, interval: 0 }}
      />
    </div>
  );
}

export function Hours({ hours }: { hours: Health['throughput'] }) {
  const done = hours.reduce((sum, hour) => sum + hour.items, 0);
  return (
    <div role="img" aria-label={`${done} items were over in the last 24 hours`}>
      <BarChart
        h={150}
        data={hours.map((hour) => ({ hour: clockTime(Date.parse(hour.beginsAt)), items: hour.items }))}
        dataKey="hour"
        series={[{ name: 'items', color: 'var(--state-completed)' }]}
        tickLine="none"
        gridAxis="x"
        barProps={PLAIN}
        yAxisProps={{ allowDecimals: false, width: 36, interval: 0 }}
        barChartProps={{ margin: { top: 8 } }}
      />
    </div>
  );
}
