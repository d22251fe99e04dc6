import { compareText } from '../model/diff';

const MARK = { same: ' ', added: '+', removed: '−' };

/** What was, what is, and what both have: as text, line by line. */
export function TextDiff({ before, now, label }: { before: string; now: string; label: string }) {
  return (
    <pre className="payload" aria-label={label}>
      {compareText(before, now).map((line, index) => (
        <div key={index} className={`diff-${line.kind}`}>
          {MARK[line.kind]} {line.text}
        </div>
      ))}
    </pre>
  );
}
