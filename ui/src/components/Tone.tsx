import type { CSSProperties } from 'react';

/** A status of an item, with a dot in the colour of what it means. */
export function Tone({ status, tone = 'blocked' }: { status: string; tone?: string }) {
  return (
    <span className="state" style={{ '--state': `var(--state-${tone})` } as CSSProperties}>
      <span className={`state-dot${tone === 'processing' ? ' alive' : ''}`} aria-hidden="true" />
      {status}
    </span>
  );
}
