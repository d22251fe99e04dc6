import '@mantine/charts/styles.css';
import { BarChart } from '@mantine/charts';
import type { Bucket } from '../model/dashboard';
import { label } from '../model/states';

const SERIES = ['completed', 'running', 'cancelled', 'timed_out', 'failed'];

export default function HourChart({ data }: { data: readonly Bucket[] }) {
  return (
    <BarChart
      h={190}
      data={[...data]}
      dataKey="hour"
      type="stacked"
      series={SERIES.map((name) => ({ name, label: label(name), color: `var(--state-${name})` }))}
      tickLine="none"
      gridAxis="x"
      barProps={{ isAnimationActive: false }}
      yAxisProps={{ allowDecimals: false, width: 36, interval: 0 }}
      barChartProps={{ margin: { top: 8 } }}
    />
  );
}
