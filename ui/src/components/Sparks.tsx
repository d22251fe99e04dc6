/** Numbers in a row, as small bars. */
export function Sparks({ values, label }: { values: readonly number[]; label: string }) {
  const most = Math.max(1, ...values);
  return (
    <span className="sparks" role="img" aria-label={label} title={label}>
      {values.map((value, index) => (
        <span key={index} style={{ height: `${value === 0 ? 0 : Math.max(12, (100 * value) / most)}%` }} />
      ))}
    </span>
  );
}
