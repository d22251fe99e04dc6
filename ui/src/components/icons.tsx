/** Drawn on a grid of 24, with strokes in the colour of the text around them. */
import type { ReactNode } from 'react';

function icon(shape: ReactNode) {
  return function Icon({ size = 18 }: { size?: number }) {
    return (
      <svg
        width={size}
        height={size}
        viewBox="0 0 24 24"
        fill="none"
        stroke="currentColor"
        strokeWidth={1.75}
        strokeLinecap="round"
        strokeLinejoin="round"
        aria-hidden="true"
      >
        {shape}
      </svg>
    );
  };
}

export const DashboardIcon = icon(<path d="M4 13h6V4H4zM14 20h6v-9h-6zM4 20h6v-3H4zM14 7h6V4h-6z" />);
export const ExecutionsIcon = icon(<path d="M5 6h14M5 12h14M5 18h9" />);
export const LetterIcon = icon(
  <path d="M3 7l9 6 9-6M4 5h16a1 1 0 0 1 1 1v12a1 1 0 0 1-1 1H4a1 1 0 0 1-1-1V6a1 1 0 0 1 1-1z" />,
);
export const GateIcon = icon(<path d="M5 21V5M19 21V5M5 9h14M5 15h14M3 5h4M17 5h4" />);
export const RuleIcon = icon(<path d="M5 5h5v5H5zM14 14h5v5h-5zM10 7.5h3a4 4 0 0 1 4 4V14" />);
export const WorkerIcon = icon(
  <path d="M12 8v-3M5 8h14v11H5zM9 13v1M15 13v1M3 12v4M21 12v4M12 4.5a.5.5 0 1 0 0-.01" />,
);
export const KeyIcon = icon(
  <path d="M14.5 9.5a4.5 4.5 0 1 1-4.2-4.49A4.5 4.5 0 0 1 14.5 9.5zM13.5 12.5L20 19M17 16l2-2M19.5 18.5" />,
);
export const BookIcon = icon(
  <path d="M5 5a2 2 0 0 1 2-2h12v15H7a2 2 0 0 0-2 2zM5 20a2 2 0 0 0 2 1h12v-3M9 7h6M9 11h4" />,
);
export const SearchIcon = icon(<path d="M11 18a7 7 0 1 0 0-14 7 7 0 0 0 0 14zM20 20l-4-4" />);
export const SunIcon = icon(
  <path d="M12 16a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM12 3v2M12 19v2M3 12h2M19 12h2M5.6 5.6L7 7M17 17l1.4 1.4M5.6 18.4L7 17M17 7l1.4-1.4" />,
);
export const MoonIcon = icon(<path d="M20 14.5A8 8 0 1 1 9.5 4a6.5 6.5 0 0 0 10.5 10.5z" />);
export const UserIcon = icon(<path d="M12 12a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM5 20a7 7 0 0 1 14 0" />);
export const CopyIcon = icon(<path d="M9 9h11v11H9zM5 15H4V4h11v1" />);
export const CheckIcon = icon(<path d="M5 12l5 5L20 7" />);
export const RetryIcon = icon(<path d="M4 12a8 8 0 1 1 2.3 5.6M4 18v-5h5" />);
export const SkipIcon = icon(<path d="M5 5l9 7-9 7zM19 5v14" />);
export const StopIcon = icon(<path d="M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18zM9 9h6v6H9z" />);
export const PlayIcon = icon(<path d="M7 5l12 7-12 7z" />);
export const TerminalIcon = icon(<path d="M5 8l4 4-4 4M12 17h7" />);
export const AlarmIcon = icon(<path d="M12 4l9 16H3zM12 10v4M12 17v.01" />);
export const ResultsIcon = icon(
  <path d="M12 11c4.4 0 8-1.3 8-3s-3.6-3-8-3-8 1.3-8 3 3.6 3 8 3zM4 8v8c0 1.7 3.6 3 8 3s8-1.3 8-3V8M4 12c0 1.7 3.6 3 8 3s8-1.3 8-3" />,
);
export const PipelineIcon = icon(<path d="M3 6h5v12H3zM10 6h5v8h-5zM17 6h4v5h-4z" />);
